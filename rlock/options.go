package rlock

import (
	"time"

	"relock/internal/engine"
	"relock/internal/facade"
)

// MutexOption is an option of New.
type MutexOption func(*mutexOptions)

type mutexOptions = facade.MutexOptions

// Fenced gives every section a fencing token, see [Hold.Token]. The acquire script draws it,
// at no further round trip, and reserves more for the goroutines that it may be handed over
// to. Unused ones are skipped.
//
// The highest token stands under Redisson's key, "redisson_lock_token:{name}", without a TTL:
// see [FencedFor]. Use a name either fenced or not.
func Fenced() MutexOption { return func(o *mutexOptions) { o.Fenced = true } }

// FencedFor is [Fenced], but the key of the fencing token ends: Redis deletes it when the lock has
// not been used for d, so that names which are used once leave nothing behind. d is from 1 ms to
// 100 years (else [ErrArgument]).
//
// Warning: after that, tokens begin again from 1. A resource that remembers a token of before
// refuses the new owners, and one that forgot it too cannot tell a stale holder from them. So d must
// be longer than any stale holder's token may still be compared: longer than a process may be stopped
// and still write, and than the resource keeps the token that it compares with.
//
// Every use renews the end: d is counted from the end of the lease that an acquisition, a renewal or
// an Extend gives the lock, so the key outlives a lock that is held, and one whose holder died. Give
// FencedFor with the same d to every handle of the name, in all processes: a handle that is Fenced
// does not renew the end. Nor does Redisson's own fenced lock, whose key has no end. Use it on names
// that Java does not lock.
func FencedFor(d time.Duration) MutexOption {
	return func(o *mutexOptions) { o.Fenced, o.Ends, o.HasEnd = true, d, true }
}

// LockOption is an option of one Lock, TryLock or Do.
type LockOption = engine.LockOption

// Wait bounds the waiting of one Lock, not its section: after d it gives up with
// [ErrNotAcquired]. 0 is one attempt, and as [Mutex.TryLock] bounded in an outage. A negative d
// is [ErrArgument].
func Wait(d time.Duration) LockOption { return engine.Wait(d) }

// Lease gives one acquisition a fixed lease: the watchdog does not renew it, and the hold
// ends d after it began, unless [Hold.Extend] moves the end. d is at least 1 ms (else
// [ErrArgument]). A nested hold with a lease has a context of its own, which ends with that
// hold. Fixed leases are not handed over. Those that Redisson may cut off, of named owners and of
// readers, are kept up to their end by renewals, see [Config].RedissonWatchdog.
func Lease(d time.Duration) LockOption { return engine.Lease(d) }

// Retry makes one Lock, TryLock or Do a series of attempts: after each refusal it sleeps as b
// says and asks again, without a queue and without messages, whatever Config.Polling is. It gives
// up with [ErrNotAcquired] when b does ([Limit]), when the next attempt would begin after the end
// of [Wait], or with ctx. Only refusals are followed by another attempt; an error of the client
// is returned. A nil b is [ErrArgument].
func Retry(b Backoff) LockOption { return engine.Retry(b) }

// Backoff says for how long a caller that was refused n times, counted from 1, sleeps before it
// asks again; below 0: it gives up. Sleeps are at least 1 ms. A Backoff is called by several
// goroutines at the same time, and must not block.
type Backoff = engine.Backoff

// Linear sleeps for d each time; for a random time between half of d and d, so that callers which
// were refused together do not come back together.
func Linear(d time.Duration) Backoff { return engine.Linear(d) }

// Exponential sleeps for first, then for twice as long each time, at most for most; with the
// jitter of [Linear].
func Exponential(first, most time.Duration) Backoff { return engine.Exponential(first, most) }

// Limit is b for so many attempts, the first one included; then it gives up.
func Limit(b Backoff, attempts int) Backoff { return engine.Limit(b, attempts) }
