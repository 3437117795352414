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
// The highest token stands under Redisson's key, "redisson_lock_token:{name}", without a TTL.
// Use a name either fenced or not.
func Fenced() MutexOption { return func(o *mutexOptions) { o.Fenced = true } }

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
