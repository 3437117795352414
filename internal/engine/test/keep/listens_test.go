package keep_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A client that cannot ask for a kept lock, as Redisson's, has its turn while the session goes on using the lock: when
// that passes through Redis, the session leaves it to those who listen for as long as they take to come. It used to have
// the lock again before they had heard.
func TestAKeptLockInUseIsLeftToThoseWhoListen(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const d = 300 * time.Millisecond
		java := locktest.NewRedisson(t, s, "../../../../testdata/redisson", "redisson_lock__channel:{x}")
		ses, ctx := dial(t, s, rlock.Config{PollFloor: time.Hour}), within(t, time.Minute)
		end := usesAllTheTime(ctx, rlock.New(ses, "x", rlock.Keep(d)))
		defer end()
		thread := java.Thread()
		lock := func() (bool, time.Duration) {
			time.Sleep(300 * time.Microsecond) // its way to Redis
			reply := java.Run("lock", []string{"x"}, "60000", thread)
			ms, _ := strconv.ParseInt(reply, 10, 64)
			return reply == "", time.Duration(ms) * time.Millisecond
		}
		for turn := range 6 {
			began := time.Now()
			limited, cancel := context.WithTimeout(ctx, 5*d+s.Slack())
			must(t, java.Take(&locktest.Attempt{T: t, Ctx: limited, Name: "x"}, lock))
			cancel()
			took := time.Since(began)
			if s.IsMini() && took > 2*d {
				t.Errorf("turn %d: it came after %v", turn, took)
			}
			if n := locktest.Owners(t, s, "x"); n != 1 {
				t.Errorf("%d owners", n)
			}
			keys := []string{"x", "redisson_lock__channel:{x}"}
			if got := java.Unlock("unlock", keys, "0", "60000", thread, "PUBLISH"); got != "1" {
				t.Errorf("its unlock was answered %q", got)
			}
		}
		cycles, ended := end()
		must(t, locktest.Get(t, ended, 10*time.Second, "the session to stop"))
		least := int64(6) // a turn of the other's, and how many there are beside is a matter of the machine
		if s.IsMini() {
			least = 50
		}
		if n := cycles.Load(); n < least {
			t.Errorf("the session was in %d times only", n)
		}
	})
}

// usesAllTheTime locks and unlocks m again and again, until end is called. That tells how often it did, when ended
// has had its value.
func usesAllTheTime(ctx context.Context, m *rlock.Mutex) (end func() (cycles *atomic.Int64, ended <-chan error)) {
	stop, over := make(chan struct{}), make(chan error, 1)
	var n atomic.Int64
	cycle := func() error {
		_, h, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond) // so that a made-up clock goes on; nothing lies between Unlock and Lock
		if err := h.Unlock(); err != nil {
			return err
		}
		n.Add(1)
		return nil
	}
	go func() {
		for {
			select {
			case <-stop:
				over <- nil
				return
			default:
			}
			if err := cycle(); err != nil {
				over <- err
				return
			}
		}
	}()
	return sync.OnceValues(func() (*atomic.Int64, <-chan error) {
		close(stop)
		return &n, over
	})
}
