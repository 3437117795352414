package fault_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// An ACL that is narrowed while a session runs ends a script at the first command that it forbids:
// behind the one that has made the lock, and before the one that gives it an end. That lock had no
// holder, and stood for good, also when the ACL was mended. What such an attempt may have left is
// released.
func TestALockThatIsDeniedMidwayLeavesNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	opt, allow := faultUser(t, s, "u")
	ctx := within(t, 30*time.Second)
	ses, err := rlock.Dial(ctx, opt, rlock.Config{})
	must(t, err)
	defer ses.Close()
	locks := locksOfEachKind(ses)
	for _, forbidden := range []string{"pexpire", "hset", "hincrby", "sadd", "zadd", "set"} {
		allow("-" + forbidden)
		for what, lock := range locks {
			_, h, err := lock(ctx, rlock.Wait(0))
			switch {
			case err == nil: // it does without that command
				must(t, h.Unlock())
			case !errors.Is(err, rlock.ErrUnavailable):
				t.Errorf("%s without %s: %v", what, forbidden, err)
			}
		}
		allow()
		redistest.Eventually(t, 10*time.Second, "Redis to have none of the locks", func() bool {
			for _, key := range s.Keys(t) {
				if !strings.HasPrefix(key, "redisson_lock_token:") {
					return false
				}
			}
			return true
		})
	}
	for what, lock := range locks {
		_, h, err := lock(ctx, rlock.Wait(0))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		must(t, h.Unlock())
	}
}

// lockCall is one of the calls that take a lock.
type lockCall = func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)

// locksOfEachKind are calls that take a lock each, by their names.
func locksOfEachKind(ses *rlock.Session) map[string]lockCall {
	return map[string]lockCall{
		"plain":     rlock.New(ses, "plain").Lock,
		"plain try": rlock.New(ses, "plain try").TryLock,
		"fenced":    rlock.New(ses, "fenced", rlock.Fenced()).Lock,
		"fair":      fairlock.New(ses, "fair").Lock,
		"fair try":  fairlock.New(ses, "fair try").TryLock,
		"read":      rwlock.New(ses, "read").RLock,
		"write":     rwlock.New(ses, "write").Lock,
		"named": func(ctx context.Context, o ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
			return rlock.New(ses, "named").Lock(rlock.WithOwner(ctx, "me"), o...)
		},
		"named read": func(ctx context.Context, o ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
			return rwlock.New(ses, "named read").RLock(rlock.WithOwner(ctx, "me"), o...)
		},
		"named fair": func(ctx context.Context, o ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
			return fairlock.New(ses, "named fair").Lock(rlock.WithOwner(ctx, "me"), o...)
		},
	}
}

// What is to be given back may be denied too. It is tried for a moment only: callers that are denied
// again and again would pile up releases, for which Close waits.
func TestWhatIsDeniedTwiceIsGivenUp(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	opt, allow := faultUser(t, s, "twice")
	ctx := within(t, 30*time.Second)
	ses, err := rlock.Dial(ctx, opt, rlock.Config{})
	must(t, err)
	defer ses.Close()
	allow("-hset", "-hincrby", "-hdel", "-del")
	for _, lock := range []lockCall{
		rlock.New(ses, "plain").TryLock, fairlock.New(ses, "fair").TryLock, rwlock.New(ses, "rw").TryLock,
	} {
		for range 3 {
			if _, _, err := lock(ctx); !errors.Is(err, rlock.ErrUnavailable) {
				t.Errorf("denied: %v", err)
			}
		}
	}
	redistest.Eventually(t, 6*time.Second, "the session to give up", func() bool {
		_, _, _, _, cleaning := locktest.Books(ses)
		return cleaning == 0
	})
}
