package rlock

import (
	"time"

	"relock/internal/api"
	"relock/internal/clock"
	"relock/internal/mutex"
)

// MutexOption is an option of New.
type MutexOption func(*mutexOptions)

type mutexOptions = mutex.Options

// Fenced gives every section a fencing token: [Hold.Token]. The acquire script draws it, and those
// of sections that the lock may be handed over to; unused ones are skipped. The highest stays under
// Redisson's key, "redisson_lock_token:{name}": see [FencedFor]. A name is either fenced or not.
func Fenced() MutexOption { return func(o *mutexOptions) { o.Fenced = true } }

// FencedFor is [Fenced], but Redis deletes the token's key when the lock has not been used for d (1
// ms to 100 years) after its lease: for names that are used once. Give all handles of a name, in
// all processes, the same d: Fenced handles and Java do not move the end. Warning: tokens begin
// again from 1 then, and a resource that remembers an earlier one refuses the new owners. So d must
// exceed that memory, and how late a stopped process may write.
func FencedFor(d time.Duration) MutexOption {
	return func(o *mutexOptions) { o.Fenced, o.Ends, o.HasEnd = true, d, true }
}

// Keep has the session keep the lock for up to d (from 1 ms to half of Config.Lease) after its last Unlock, until another
// session wants it: a Lock of the session meanwhile costs no command, nor does its Unlock. It is for names that one process
// uses again and again, as those of a service whose requests are routed by key. Others ask for the lock back, and have it
// within a round trip more than otherwise; a session that is asked again and again keeps the lock less often.
//
// What it costs:
//
//   - A process that dies leaves the lock for its lease, though nobody was inside.
//   - Redisson's clients, and those of earlier versions, cannot ask. They wait for d at most after the last Unlock; while
//     the session goes on using the lock it passes through Redis about once in d, and is left to those who listen for it
//     for up to 10 ms then. A client that wakes up later than that waits for the next time.
//   - A TryLock elsewhere is refused, but asks for the lock back.
//   - Whether the session is inside or only keeps the lock does not show in Redis: "relock ls" says "may be kept".
//     Trace.Kept tells the session's own hooks.
//   - While a lock is kept it is renewed: a script each third of the lease.
//
// A lock that is kept is part of no deadlock, and ForceUnlock ends it as any other.
//
// Named owners, and holds with [Lease] or [AtLeast], are not kept, and if the session keeps the lock it gives it back
// before they ask. [Session.Close] and Shutdown give back what is kept. If a kept lock is lost nobody's section ends, and
// behind a reconnect it is not entered before Redis has confirmed it. With [Fenced] each section has a token of its own,
// of 64 more that are reserved with the lock. Handles with and without Keep of one name share what is kept. It needs
// Config.HandOverLimit not to be -1. The idea is that of the delegations of NFS, and of Chubby.
func Keep(d time.Duration) MutexOption {
	return func(o *mutexOptions) { o.Keep, o.Keeps = d, true }
}

// LockOption is an option of one Lock, TryLock or Do.
type LockOption = api.Option

// Wait bounds the waiting of one Lock, not its section: after d, at least 0, it ends with
// [ErrNotAcquired]. 0 is one attempt, as by [Mutex.TryLock].
func Wait(d time.Duration) LockOption { return api.Wait(d) }

// Lease gives one acquisition a fixed lease of at least 1 ms, neither renewed nor handed over: the
// hold ends d after it began, unless [Hold.Extend] moves the end. A nested hold with a lease has a
// context that ends with it.
func Lease(d time.Duration) LockOption { return api.Lease(d) }

// AtLeast has the lock stand until d (at least 1 ms) after it was acquired: an Unlock before leaves it standing for
// the rest of d, and nobody else enters it until then. It is ShedLock's lockAtLeastFor, for jobs that several processes
// start at about the same time and that one of them shall run: d must exceed how far apart they start, by their clocks,
// and be shorter than the interval. [Lease] is the counterpart of lockAtMostFor; d must not exceed it.
//
// Such an Unlock costs one round trip as any other, and sets the end of the lock in Redis, which counts from there: no
// process needs to live on for it. What is left standing has nobody inside: the hold and its context have ended.
// [Session.Close] and Shutdown leave it too, also if the section is still open; [Mutex.ForceUnlock] ends it. The lock is
// passed on to no other caller in memory. A process that dies inside leaves the lock for its lease, be that longer or
// shorter than d. An owner that [WithOwner] names gets in again all the same, as into any lock of its own.
// Warning: the lock then stands for as long as the lease of that later hold, also when that was unlocked: what was left
// standing still counts. So it does for as long as the lease of another session that holds the lock under that name.
// Nested holds count together: the latest end of theirs holds. It is for plain and fair locks and the write side of a
// read-write lock, which a downgrade does not open to readers before; elsewhere it is [ErrArgument].
func AtLeast(d time.Duration) LockOption { return api.AtLeast(d) }

// AsyncRelease has a Do end with [Hold.UnlockAsync] in place of [Hold.Unlock]: it returns what fn returns, without the
// answer to its release, and what that says goes to Config.Logger and Config.Trace. It is for Do alone, of locks and of
// semaphores: elsewhere it is [ErrArgument].
func AsyncRelease() LockOption { return api.Async() }

// Retry makes a Lock, TryLock or Do a series of attempts: after each refusal it sleeps as b says
// and asks again, without queue or messages. It gives up with [ErrNotAcquired] when b does
// ([Limit]), or with [Wait] or ctx.
func Retry(b Backoff) LockOption { return api.Retry(b) }

// Backoff is a func(n int) time.Duration: for how long a caller that was refused n times (from 1) sleeps
// before it asks again, at least 1 ms; below 0 it gives up. Several goroutines call it; it must not block.
type Backoff = clock.Backoff

// Linear sleeps for d each time, less up to half of it at random.
func Linear(d time.Duration) Backoff { return clock.Linear(d) }

// Exponential is Linear with a d of first, twice first and so on, up to most.
func Exponential(first, most time.Duration) Backoff { return clock.Exponential(first, most) }

// Limit is b for so many attempts, the first one included; then it gives up.
func Limit(b Backoff, attempts int) Backoff { return clock.Limit(b, attempts) }
