// Package locktrace has the hooks by which a session tells what its locks do, for metrics, tracing
// and tests, as net/http/httptrace does for requests. A session calls those of its
// rlock.Config.Trace; without one they cost nothing.
//
// Hooks tell what the session knows. What happens in Redis behind its back, as an expiry or a
// command by hand, is told when it is noticed.
//
// In all events Name is the lock's name, without Config.Prefix. Kind is "mutex", "fair", "read",
// "write", "semaphore", "counter" or "latch": an election is "fair", each vote of a quorum a "mutex",
// and each lock of a multilock is told by itself. Owner is the owner as it stands in Redis, or ""
// where it is not known yet or there is none. N is the number of permits, 1 for a lock.
package locktrace

import (
	"context"
	"time"
)

// Trace is a set of hooks for metrics, tracing and tests. Any of them may be nil. Module
// relock/otel makes one for OpenTelemetry.
//
// A start hook gets the caller's context and returns one, and the end hook gets that one. A
// start hook that returns nil passes on what it was given. The context reaches hooks only: the
// section's is derived from the one that was given to Lock.
//
// Each start has exactly one end:
//
//   - AcquireStart and AcquireEnd enclose one Lock, TryLock, Acquire or Do whose arguments are
//     valid. Waiting comes at most once in between, and AcquireEnd.Waited then says so.
//   - HoldStart follows the AcquireEnd of a call that got a hold. HoldEnd comes when the hold
//     ends, for whatever reason. A hold that is lost first and unlocked later ends once.
//   - ReleaseStart and ReleaseEnd enclose the round trip of an Unlock, if it needs one; of an UnlockAsync they
//     enclose its way until it is answered.
//   - A Subscription that is connected is lost or closed later.
//   - A Kept with KeptBegins, for a lock that the session keeps (rlock.Keep), is followed by one with any other
//     event but KeptWanted, when it is kept no longer. While a thousand events wait for hooks that are slower than the
//     locks are used, neither of the two is told.
//
// A Line event begins nothing: it has no end.
//
// Hooks of a call run in that call, and it waits for them. All others run one at a time in a
// goroutine of the session: Lost, Renewed, Subscription, Line, Kept, HoldEnd unless an Unlock or Abandon
// has ended the hold, and what follows from an UnlockAsync behind its ReleaseStart. Close waits up to 250 ms for these, so that gauges are 0 when it returns.
// A hook must be quick, and must not call the session or its locks. One that blocks keeps what its call has, as the lock
// or a place in the queue. One that panics counts as one that has returned, for the lock that it was told of would have no
// owner else: the Logger is told. One that ends its goroutine, as t.FailNow does, ends its call, which gives back what it
// has.
type Trace struct {
	// AcquireStart: a caller wants a lock.
	AcquireStart func(ctx context.Context, e AcquireStart) context.Context
	// Waiting: that caller begins to wait for a release. ctx is AcquireStart's.
	Waiting func(ctx context.Context, e Waiting)
	// AcquireEnd: the caller got the lock, or did not. ctx is AcquireStart's.
	AcquireEnd func(ctx context.Context, e AcquireEnd)

	// HoldStart: a hold begins. ctx is the one that was given to Lock.
	HoldStart func(ctx context.Context, e HoldStart) context.Context
	// HoldEnd: the hold has ended. After an Unlock it comes when the outcome is known. ctx is
	// HoldStart's.
	HoldEnd func(ctx context.Context, e HoldEnd)

	// ReleaseStart: an Unlock sends a release. ctx is HoldStart's.
	ReleaseStart func(ctx context.Context, e ReleaseStart) context.Context
	// ReleaseEnd: the release was answered, or the release timeout is over. Releases that the
	// session goes on with in the background are not told. ctx is ReleaseStart's.
	ReleaseEnd func(ctx context.Context, e ReleaseEnd)

	// Attempt: an acquire script was answered, or failed.
	Attempt func(e Attempt)
	// HandedOver: an Unlock has passed the lock on to the next caller, in memory.
	HandedOver func(e HandedOver)
	// Lost: an owner has lost its lock. Each of its holds has a HoldEnd as well.
	Lost func(e Lost)
	// Renewed: a batch of renewals was answered, or failed.
	Renewed func(e Renewed)
	// Subscription: the state of a subscription has changed.
	Subscription func(e Subscription)
	// Line: a message has told the session of its place in the line of a lock.
	Line func(e Line)
	// Kept: the session keeps a lock that it has left, keeps it no longer, or was asked for it.
	Kept func(e Kept)
}

// The events of a Trace. The package documentation explains Name, Kind, Owner and N.
type (
	// AcquireStart begins one call.
	AcquireStart struct {
		Name, Kind, Owner string
		N                 int
		Try               bool // it does not wait: TryLock, TryAcquire, Wait(0)
	}

	// Waiting is the beginning of a wait.
	Waiting struct {
		Name, Kind, Owner string
		N                 int
		Queue             int // callers of the session that wait now, for any lock; this one counts
	}

	// AcquireEnd ends the call.
	AcquireEnd struct {
		Name, Kind, Owner string
		N                 int
		Outcome           Outcome
		Grant             Grant         // "" unless acquired
		Nested            bool          // the owner had the lock already
		Waited            bool          // Waiting was called
		Holds             int           // of this lock that the owner now has in the session; 0 unless acquired
		Attempts          int           // scripts that this call has sent
		Wait              time.Duration // since AcquireStart
		Queue             int           // callers of the session that still wait, for any lock
		Err               error         // nil if acquired
	}

	// HoldStart begins a hold.
	HoldStart struct {
		Name, Kind, Owner string
		N                 int
		Nested            bool // the owner had the lock already
	}

	// HoldEnd ends a hold.
	HoldEnd struct {
		Name, Kind, Owner string
		N                 int
		Nested            bool // as in HoldStart
		Reason            HoldReason
		Held              time.Duration // since HoldStart, without the round trip of the release
	}

	// ReleaseStart begins the round trip of a release.
	ReleaseStart struct {
		Name, Kind, Owner string
		N                 int
	}

	// ReleaseEnd ends a release. Err is nil if Redis has confirmed it, and rlock.ErrLost if there was
	// nothing to release any more.
	ReleaseEnd struct {
		Name, Kind, Owner string
		N                 int
		Took              time.Duration // since ReleaseStart
		Err               error
	}

	// Attempt is an acquire script. Err is nil if the lock was granted, or refused because
	// another owner has it.
	Attempt struct {
		Name, Kind, Owner string
		N                 int
		Granted           bool
		Err               error
	}

	// HandedOver is a hand-over in memory: the owner in Redis stays the same.
	HandedOver struct {
		Name, Kind, Owner string
		N                 int
	}

	// Lost is a loss, with its reason in words.
	Lost struct {
		Name, Kind, Owner string
		N                 int
		Reason            string
	}

	// Renewed is the answer to the renewal of that many claims, sent as one script. A claim that was
	// found gone is told by Lost.
	Renewed struct {
		Claims int
		Took   time.Duration // the round trip
		Err    error         // no answer, or a refusal; the renewal is tried again
	}

	// Subscription is a change of state. Node is the address in a Cluster, else "". Err says
	// why, unless the state is connected or closed.
	Subscription struct {
		State SubscriptionState
		Node  string
		Err   error
	}

	// Line is a message to a session that waits in the line of a lock. The release of another
	// session sends it, or the session that stood in front and waits no more. The message counts when
	// it arrives, also if no caller of the session waits any more.
	Line struct {
		Name, Kind string
		What       LineEvent
	}

	// Kept tells of a lock that the session keeps without a section, as rlock.Keep has it.
	Kept struct {
		Name, Kind, Owner string
		What              KeptEvent
	}
)

// Outcome is how a call ended that wanted a lock.
type Outcome string

// The outcomes, as words that can be the values of a label.
const (
	OutcomeAcquired    Outcome = "acquired"    // the caller has the lock
	OutcomeRefused     Outcome = "refused"     // a call that does not wait found the lock held
	OutcomeTimedOut    Outcome = "timeout"     // Wait is over, or the deadline of the context
	OutcomeCancelled   Outcome = "cancelled"   // the context was cancelled
	OutcomeUnavailable Outcome = "unavailable" // Redis did not answer, or could not serve
	OutcomeClosed      Outcome = "closed"      // the session is closed or shuts down
	OutcomeDeadlock    Outcome = "deadlock"    // rlock.ErrDeadlock
	OutcomeFailed      Outcome = "failed"      // any other error
)

// Grant is where a lock came from.
type Grant string

// The grants, as words that can be the values of a label.
const (
	GrantRedis  Grant = "redis"  // Redis granted it to this caller
	GrantMemory Grant = "memory" // a caller of the same session passed it on, or a section was re-entered without Redis
	GrantShared Grant = "shared" // the caller joined the read hold of another one
	GrantKept   Grant = "kept"   // the session had kept it since its last section: see rlock.Keep
	GrantLine   Grant = "line"   // another session gave the lock, which the session stood in line for: see LineGranted
)

// HoldReason is why a hold has ended.
type HoldReason string

// The reasons, as words that can be the values of a label.
const (
	HoldReleased  HoldReason = "released"  // Unlock; its release may be going on in the background
	HoldLost      HoldReason = "lost"      // it was lost before, or an Unlock found it gone
	HoldClosed    HoldReason = "closed"    // the session was closed
	HoldExpired   HoldReason = "expired"   // its fixed lease is over
	HoldAbandoned HoldReason = "abandoned" // Hold.Abandon
)

// LineEvent is what a session is told while it stands in the line of a lock. Sessions that wait for a
// plain mutex stand in a line in Redis.
type LineEvent string

// The messages of a line, as words that can be the values of a label.
const (
	// LineGranted: another session has given the lock to this one. A caller that gets it so has
	// GrantLine. A message that came too late to be trusted makes the caller ask Redis instead, and its
	// AcquireEnd says GrantRedis then.
	LineGranted LineEvent = "granted"
	// LineCalled: the session may ask for the lock now.
	LineCalled LineEvent = "called"
	// LineOpen: the session may ask after a delay of some milliseconds. Until then the lock is left to others:
	// to clients that stand in no line, as Redisson's, or to the session in front of this one.
	LineOpen LineEvent = "open"
)

// KeptEvent is what happens to a lock that a session may keep.
type KeptEvent string

// The events, as words that can be the values of a label.
const (
	// KeptBegins: the last section has ended, and the session keeps the lock.
	KeptBegins KeptEvent = "begins"
	// KeptReused: a caller of the session has the lock again, without a command. Its AcquireEnd says GrantKept.
	KeptReused KeptEvent = "reused"
	// KeptWanted: another session has asked for the lock. If it is kept at that moment, a KeptGivenBack follows; if it is
	// in use, it is not kept when its section ends.
	KeptWanted KeptEvent = "wanted"
	// KeptGivenBack: the lock is released, since another session wants it.
	KeptGivenBack KeptEvent = "given back"
	// KeptOver: the lock is released for another reason: its time is over, it was lost, a caller of the session
	// cannot use it, or the session ends.
	KeptOver KeptEvent = "over"
)

// SubscriptionState is what has become of the connection on which a session listens.
type SubscriptionState string

// The states, as words that can be the values of a label.
const (
	SubscriptionConnected SubscriptionState = "connected" // a connection listens
	SubscriptionLost      SubscriptionState = "lost"      // such a connection broke
	SubscriptionClosed    SubscriptionState = "closed"    // such a connection is no longer needed
	SubscriptionRefused   SubscriptionState = "refused"   // Redis refused a subscription, as an ACL does
	SubscriptionPolling   SubscriptionState = "polling"   // a waiter could not listen, and asks again after a pause
)
