package gocron

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"relock/rlock"
)

// DefaultAtLeast is for how long a job's lock stands, also if the job ends sooner: enough for clocks
// that are set by NTP, and short enough for a job that runs each second.
const DefaultAtLeast = 500 * time.Millisecond

// Option is an option of NewLocker.
type Option func(*locker)

// AtLeast has the lock of a job stand until d after it was acquired. It must exceed how far apart the
// processes start the job, and be shorter than the job's interval by as much. At least 1 ms, else each Lock is
// [rlock.ErrArgument]. Default: [DefaultAtLeast].
func AtLeast(d time.Duration) Option { return func(l *locker) { l.atLeast = d } }

// AtMost gives the lock of a job a fixed lease: it ends d after it was acquired, also if the job still
// runs. It must not be less than AtLeast. Without it the lock is renewed for as long as the job runs.
func AtMost(d time.Duration) Option {
	return func(l *locker) { l.opts = append(l.opts, rlock.Lease(d)) }
}

// Prefix is put before the names of jobs, behind the session's Config.Prefix, to make the names of
// their locks. Default: none.
func Prefix(p string) Option { return func(l *locker) { l.prefix = p } }

// NewLocker returns what gocron.WithDistributedLocker and gocron.WithDistributedJobLocker take. The lock
// of a job has the job's name: give it one with gocron.WithName, since by default that is its Go function's.
// Jobs of one name exclude each other, in one process too. The session must outlive the scheduler's Shutdown.
//
// Lock asks once, for one round trip, and does not wait: while Redis does not answer, as long as
// [rlock.Mutex.TryLock] does. It gives [rlock.ErrNotAcquired] if another process has the job, and else the
// errors of TryLock; gocron skips the job, and tells the error to gocron.AfterLockError. The lock lasts until the
// job has ended, whatever becomes of the context of the job. A nil session is [rlock.ErrArgument] at each Lock.
func NewLocker(s *rlock.Session, opts ...Option) gocron.Locker {
	l := &locker{session: s, atLeast: DefaultAtLeast}
	for _, o := range opts {
		if o == nil {
			l.err = fmt.Errorf("%w: an Option of NewLocker is nil", rlock.ErrArgument)
			continue
		}
		o(l)
	}
	l.opts = append(l.opts, rlock.AtLeast(l.atLeast))
	return l
}

type locker struct {
	session *rlock.Session
	atLeast time.Duration
	prefix  string
	opts    []rlock.LockOption
	err     error // what each Lock returns
}

// Lock is for gocron.
func (l *locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	if l.err != nil {
		return nil, l.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// gocron cancels the context of a job that may go on for a while. Until it has ended the lock is renewed.
	ctx = rlock.WithoutOwner(context.WithoutCancel(ctx))
	_, hold, err := rlock.New(l.session, l.prefix+job).TryLock(ctx, l.opts...)
	if err != nil {
		return nil, err
	}
	return lock{hold}, nil
}

type lock struct{ hold *rlock.Hold }

// Unlock works although the context is done, as that of a job is when its scheduler shuts down.
func (l lock) Unlock(context.Context) error { return l.hold.Unlock() }
