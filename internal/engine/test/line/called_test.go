package line_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// mutexes are the kinds of lock that have a line.
var mutexes = map[string]func(s *rlock.Session, name string) *rlock.Mutex{
	"plain": func(s *rlock.Session, name string) *rlock.Mutex { return rlock.New(s, name) },
	"fair":  func(s *rlock.Session, name string) *rlock.Mutex { return fairlock.New(s, name).Mutex },
}

// calledConfig is of sessions whose looks, also those for a fair lock, are so far away that a test would notice one.
var calledConfig = rlock.Config{PollFloor: time.Hour, QueueLease: 10 * time.Hour}

// awaitWaiters waits until so many callers stand in the line of a lock.
func awaitWaiters(t *testing.T, m *rlock.Mutex, n int) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, fmt.Sprint(n, " waiters"), func() bool {
		got, err := m.Waiters(context.Background())
		must(t, err)
		return got == n
	})
}

// patienceWith is for how long a free lock is left to a session that was called: a fair line keeps its order for one that is slow.
var patienceWith = map[string]time.Duration{"plain": 5 * time.Millisecond, "fair": 250 * time.Millisecond}

// behindTheCalled checks that the one behind has the lock 5 ms after a release that has called the one in front,
// which does not come, or 250 ms after it in a fair line. Its own look is an hour away.
func behindTheCalled(t *testing.T, s *redistest.Server, kind string, h *rlock.Hold, behind <-chan locktest.Locked) *rlock.Hold {
	t.Helper()
	began := time.Now()
	must(t, h.Unlock())
	got := locktest.Get(t, behind, 250*time.Millisecond+s.Slack(), "the Lock behind the one that was called")
	must(t, got.Err)
	want := patienceWith[kind]
	if d := got.At.Sub(began); d < want-time.Millisecond || d > want+s.Slack() {
		t.Errorf("it has the lock after %v, want %v, which are left to the one that was called", d, want)
	}
	return got.Hold
}

// A session that was called is stopped, or cut off without a word: what it was called for is an owner by name, or a
// lease of its own. The session behind it is in 5 ms later, in a fair line 250 ms (scenario 33).
func TestTheSessionBehindACalledOneThatIsSilentGetsIn(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		kind, owner string
		opts        []rlock.LockOption
	}{
		"plain, named":              {"plain", "order-17", nil},
		"plain, a lease of its own": {"plain", "", []rlock.LockOption{rlock.Lease(time.Minute)}},
		"fair, named":               {"fair", "order-17", nil}, // a fair lock is granted also with a lease of its own
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				cfg, mutex := calledConfig, mutexes[c.kind]
				holder, live := dial(t, s, cfg), dial(t, s, cfg)
				silent, p := locktest.DialProxy(t, s, cfg)
				name, ctx := redistest.Name(t), within(t, time.Minute)
				m, own := mutex(holder, name), ctx
				if c.owner != "" {
					own = rlock.WithOwner(ctx, c.owner)
				}
				_, h, err := m.Lock(ctx)
				must(t, err)
				called := locktest.GoLock(mutex(silent, name), own, c.opts...)
				awaitWaiters(t, m, 1)
				locktest.Stays(t, ctx, time.Millisecond) // in a bubble both would come at the same time, and stand in any order
				behind := locktest.GoLock(mutex(live, name), ctx)
				awaitWaiters(t, m, 2)
				locktest.Stays(t, ctx, 100*time.Millisecond) // nothing is on its way any more
				p.BlackHole(true)
				h = behindTheCalled(t, s, c.kind, h, behind)
				p.BlackHole(false)
				must(t, h.Unlock())
				got := locktest.Get(t, called, 10*time.Second, "the Lock of the one that is back")
				must(t, got.Err)
				must(t, got.Hold.Unlock())
				locktest.NothingLeft(t, s, holder, live, silent)
			})
		})
	}
}

// The entry in front is of a process that has gone, and another with the same Config.ID hears its channel: nobody
// comes when it is called. The line is written as line.lua says.
func TestTheSessionBehindACalledEntryOfAnEarlierProcessGetsIn(t *testing.T) {
	t.Parallel()
	const rest = "000" + "1250" + "0005000" + "00004" // no tokens, the grant's lease, the session's life, the length of its id
	for what, c := range map[string]struct {
		kind, entry string
	}{
		"a lease of its own": {"plain", "a" + rest + "gone:7"},
		"named":              {"plain", "n" + rest + "gone" + "order-17"},
		"fair, named":        {"fair", "i" + rest + "gone" + "0123456789abcdef0123456789abcdef" + "order-17"},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				cfg, mutex := calledConfig, mutexes[c.kind]
				holder, live := dial(t, s, cfg), dial(t, s, cfg)
				name, ctx := redistest.Name(t), within(t, time.Minute)
				m := mutex(holder, name)
				_, h, err := m.Lock(ctx)
				must(t, err)
				clock, err := s.Do(t, "TIME").AsIntSlice()
				must(t, err)
				now := clock[0]*1000 - 1 // before all others
				must(t, s.Do(t, "ZADD", locktest.LineOf(name), fmt.Sprint(now*1000), c.entry, fmt.Sprint(int64(5e15)-now-5000), "sgone").Error())
				must(t, s.Do(t, "PEXPIRE", locktest.LineOf(name), "600000").Error())
				hears, deaf := context.WithCancel(ctx)
				ended, client := make(chan struct{}), s.Client(t)
				go func() {
					defer close(ended)
					_ = client.Receive(hears, client.B().Subscribe().Channel("relock_session:gone").Build(), func(rueidis.PubSubMessage) {})
				}()
				defer func() { deaf(); <-ended }()
				locktest.Subscribed(t, s, 2)
				behind := locktest.GoLock(mutex(live, name), ctx)
				awaitWaiters(t, m, 2)
				h = behindTheCalled(t, s, c.kind, h, behind)
				must(t, h.Unlock())
			})
		})
	}
}
