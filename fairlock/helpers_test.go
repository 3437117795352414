package fairlock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/script"
	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rlock/lua"
)

// Short names for what the tests of all kinds of lock share.
var (
	dial      = locktest.Dial
	dialProxy = locktest.DialProxy
	within    = locktest.Within
	must      = locktest.Must
	is        = locktest.Is
	ends      = locktest.Ends
	each      = redistest.EachParallel
)

// patience is for what takes no time, but must not fail on a machine that is busy.
const patience = 20 * time.Second

// short is a Config in which what goes by the clock goes fast. On a made-up clock the claim time
// is 250 ms, and a heartbeat comes every 210 to 230 ms. A busy machine can be later than that with
// the renewal that confirms a grant, so it gets a second.
func short(s *redistest.Server) rlock.Config {
	second := s.Slowed(time.Second)
	return rlock.Config{Lease: 3 * second, QueueLease: second, PollFloor: second}
}

// silent is a Config in which nothing but a message or a reply moves anybody within a
// test's patience: heartbeats are minutes apart.
func silent() rlock.Config {
	return rlock.Config{Lease: time.Hour, QueueLease: time.Hour, PollFloor: time.Hour}
}

// A locked is the outcome of a Lock in a goroutine.
type locked struct {
	ctx  context.Context
	hold *rlock.Hold
	err  error
	at   time.Time
}

// A locker is a Mutex of any kind.
type locker interface {
	Lock(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

// goLock begins to Lock.
func goLock(ctx context.Context, m locker, opts ...rlock.LockOption) <-chan locked {
	c := make(chan locked, 1)
	go func() {
		section, h, err := m.Lock(ctx, opts...)
		c <- locked{section, h, err, time.Now()}
	}()
	return c
}

// goQueued begins to Lock and returns when Redis counts n waiters.
func goQueued(t testing.TB, ctx context.Context, m *fairlock.Mutex, n int, opts ...rlock.LockOption) <-chan locked {
	t.Helper()
	c := goLock(ctx, m, opts...)
	queued(t, m, n)
	return c
}

// queued waits until Redis counts n waiters.
func queued(t testing.TB, m *fairlock.Mutex, n int) {
	t.Helper()
	var got int
	redistest.Eventually(t, patience, fmt.Sprintf("%d waiters", n), func() bool {
		var err error
		got, err = m.Waiters(context.Background())
		must(t, err)
		return got == n
	})
}

// granted waits for a Lock to succeed.
func granted(t testing.TB, c <-chan locked, d time.Duration, who string) locked {
	t.Helper()
	l := locktest.Get(t, c, d, who+" has the lock")
	if l.err != nil {
		t.Fatalf("%s: %v", who, l.err)
	}
	return l
}

// waits fails the test if the Lock has returned.
func waits(t testing.TB, c <-chan locked, who string) {
	t.Helper()
	select {
	case l := <-c:
		t.Fatalf("%s does not wait any more: %v", who, l.err)
	default:
	}
}

// ended fails the test unless a critical section has ended already, with that cause. (On a
// busy machine the goroutine that ends it may be late by more than the library's margin.)
func ended(t testing.TB, section context.Context, cause error) {
	t.Helper()
	ends(t, section, 100*time.Millisecond, cause)
}

// unlock ends a hold, which must stand.
func unlock(t testing.TB, l locked) {
	t.Helper()
	must(t, l.hold.Unlock())
}

// lock takes a lock that is free.
func lock(t testing.TB, ctx context.Context, m locker, opts ...rlock.LockOption) locked {
	t.Helper()
	return granted(t, goLock(ctx, m, opts...), patience, "the first caller")
}

// ownedBy waits until Redis says that an owner other than the given one has the lock,
// and returns who.
func ownedByOther(t testing.TB, m *fairlock.Mutex, not string) (owner string) {
	t.Helper()
	redistest.Eventually(t, patience, "Redis to have let the next one in", func() bool {
		st, err := m.State(context.Background())
		must(t, err)
		for o := range st.Owners {
			owner = o
		}
		return len(st.Owners) == 1 && owner != not
	})
	return owner
}

// nothingLeft waits until Redis has no key but those, and no channel but the sessions'
// own.
func nothingLeft(t testing.TB, s *redistest.Server, keep ...string) {
	t.Helper()
	var keys, channels []string
	defer func() {
		if t.Failed() {
			t.Logf("left behind: keys %q, channels %q\n%s", keys, channels, locktest.Describe(t, s))
		}
	}()
	redistest.Eventually(t, 10*time.Second, "nothing to be left behind", func() bool {
		keys, channels = nil, nil
		for _, k := range s.Keys(t) {
			if !strings.Contains(strings.Join(keep, " "), k) {
				keys = append(keys, k)
			}
		}
		for _, c := range s.Channels(t) {
			if !strings.HasPrefix(c, "relock_session:") {
				channels = append(channels, c)
			}
		}
		return len(keys)+len(channels) == 0
	})
}

// runs returns a matcher, for a proxy, for the calls of one of the scripts.
func runs(name string) func(cmd []string) bool {
	return locktest.Runs(script.Load(lua.Files, name+".lua").Source())
}

// renews is that for the renewals, whose script is not of this package.
func renews(t testing.TB) func(cmd []string) bool {
	t.Helper()
	return locktest.Runs(script.Load(lua.Files, "renew.lua").Source())
}

// pause is for tests of what goes by the clock: how much is sent in a while, how long
// something lasts. Nothing is synchronised by it.
func pause(d time.Duration) { <-time.After(d) }

func hasText(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }

// newProxy starts a proxy, for a session that needs faults from its first command on.
func newProxy(t testing.TB, s *redistest.Server) *faulttest.Proxy {
	p, _ := faulttest.Of(t, s.Option())
	return p
}

// dialVia makes a session through that proxy.
func dialVia(t testing.TB, s *redistest.Server, p *faulttest.Proxy, cfg rlock.Config) *rlock.Session {
	t.Helper()
	opt := p.Option(s.Option())
	ses, err := rlock.Dial(context.Background(), opt, cfg)
	must(t, err)
	t.Cleanup(func() {
		p.BlackHole(false)
		p.Refuse(false)
		_ = ses.Close()
	})
	return ses
}
