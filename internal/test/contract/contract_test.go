// Package contract_test has the public interface, as its users write it: it compiles as long as code that was written
// against that does.
package contract_test

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"relock/election"
	"relock/fairlock"
	"relock/pubsub"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

type (
	ctx   = context.Context
	locks = func(ctx, ...rlock.LockOption) (ctx, *rlock.Hold, error)
	does  = func(ctx, func(ctx) error, ...rlock.LockOption) error
	taken = func(ctx, int, ...rlock.LockOption) (ctx, *semaphore.Permits, error)
	count = func(ctx) (int, error)
	force = func(ctx) (bool, error)
	ofN   = func(ctx, int) error
)

var (
	_ func(ctx, rueidis.Client, rlock.Config) (*rlock.Session, error)       = rlock.NewSession
	_ func(ctx, rueidis.ClientOption, rlock.Config) (*rlock.Session, error) = rlock.Dial
	_ func(ctx, string, rlock.Config) (*rlock.Session, error)               = rlock.DialURL
	s *rlock.Session
	_ func() string                                                   = s.ID
	_ func() error                                                    = s.Close
	_ func(ctx) error                                                 = s.Shutdown
	_ func(*rlock.Session, string, ...rlock.MutexOption) *rlock.Mutex = rlock.New
	_ func() rlock.MutexOption                                        = rlock.Fenced
	_ func(time.Duration) rlock.MutexOption                           = rlock.Keep
	m *rlock.Mutex
	_ locks                                = m.Lock
	_ locks                                = m.TryLock
	_ does                                 = m.Do
	_ func(ctx) (rlock.State, error)       = m.State
	_ force                                = m.ForceUnlock
	_ func(ctx) sync.Locker                = m.Locker
	_ count                                = m.Waiters
	_ func(time.Duration) rlock.LockOption = rlock.Wait
	_ func(time.Duration) rlock.LockOption = rlock.Lease
	_ func(time.Duration) rlock.LockOption = rlock.AtLeast
	h *rlock.Hold
	_ func() error                   = h.Unlock
	_ func(ctx, time.Duration) error = h.Extend
	_ func() error                   = h.Abandon
	_ func() string                  = h.Owner
	_ func() int64                   = h.Token
	_ func() time.Duration           = h.Remaining
	_ func()                         = h.UnlockAsync
	_ func(ctx, string) ctx          = rlock.WithOwner
	_ func(ctx) (string, bool)       = rlock.OwnerFrom
	_ func(ctx) ctx                  = rlock.WithoutOwner
	_                                = []error{rlock.ErrUnavailable, rlock.ErrNotAcquired, rlock.ErrNotHeld, rlock.ErrLost, rlock.ErrReleased, rlock.ErrClosed, rlock.ErrName, rlock.ErrConfig, rlock.ErrArgument, rwlock.ErrUpgrade, semaphore.ErrLimit}
	_                                = rlock.Config{ID: "", Prefix: "", Lease: 0, ReleaseTimeout: 0, PollFloor: 0, QueueLease: 0, HandOverLimit: 0, Label: "", Logger: (*slog.Logger)(nil), Trace: (*rlock.Trace)(nil)}
	_                                = rlock.State{Owners: map[string]int{}, TTL: time.Second}
	_ error                          = &rlock.TakenError{Name: "", Owner: "", TTL: time.Second}
	_ string                         = rlock.Version

	_ func(*rlock.Session, string, ...rlock.MutexOption) *fairlock.Mutex = fairlock.New
	f *fairlock.Mutex
	_ locks                          = f.Lock
	_ locks                          = f.TryLock
	_ does                           = f.Do
	_ func(ctx) (rlock.State, error) = f.State
	_ force                          = f.ForceUnlock
	_ func(ctx) sync.Locker          = f.Locker
	_ count                          = f.Waiters

	_  func(*rlock.Session, string, ...rlock.MutexOption) *rwlock.RWMutex = rwlock.New
	rw *rwlock.RWMutex
	_  locks                           = rw.Lock
	_  locks                           = rw.TryLock
	_  locks                           = rw.RLock
	_  locks                           = rw.TryRLock
	_  does                            = rw.Do
	_  does                            = rw.RDo
	_  func(ctx) (rwlock.State, error) = rw.State
	_                                  = rwlock.State{Mode: "", Owners: map[string]int{}, TTL: time.Second}
	_  force                           = rw.ForceUnlock

	_   = func() *semaphore.Semaphore { return semaphore.New(s, "", 1) }
	sem *semaphore.Semaphore
	_   taken                                                      = sem.Acquire
	_   taken                                                      = sem.TryAcquire
	_   func(ctx, int, func(ctx) error, ...rlock.LockOption) error = sem.Do
	_   count                                                      = sem.Available
	_   ofN                                                        = sem.SetLimit
	_   count                                                      = sem.Limit
	_   count                                                      = sem.Waiters
	p   *semaphore.Permits
	_   func() error = p.Release
	_   func() int   = p.N
	_                = func() *semaphore.Counter { return semaphore.NewCounter(s, "") }
	c   *semaphore.Counter
	_   func(ctx, int) (bool, error)              = c.TrySet
	_   func(ctx, int, ...rlock.LockOption) error = c.Acquire
	_   ofN                                       = c.TryAcquire
	_   ofN                                       = c.Release
	_   ofN                                       = c.Add
	_   count                                     = c.Drain
	_   count                                     = c.Available
	_   count                                     = c.Waiters

	hub *pubsub.Hub
	_   func(ctx, string) (*pubsub.Listener, error) = hub.Listen
	_   func() error                                = hub.Close
	li  *pubsub.Listener
	_   func() <-chan pubsub.Message = li.C
	_   func()                       = li.Close
	_                                = func(cl rueidis.Client) *pubsub.Hub { return pubsub.NewHub(cl) }

	_ = election.Callbacks{OnStartedLeading: func(ctx) {}, OnStoppedLeading: func() {}, OnNewLeader: func(election.Leader) {}}
	e *election.Election
	_ func(ctx, string, election.Callbacks) error = e.Run
	_ func() bool                                 = e.IsLeader
)
