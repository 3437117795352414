package trace_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// lineEvents are what the hook Line was told, in the order of the events.
type lineEvents struct {
	mu  sync.Mutex
	all []string
}

func (e *lineEvents) hook(l locktrace.Line) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, fmt.Sprintf("%s %s %s", l.Kind, l.Name, l.What))
}

func (e *lineEvents) len() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.all)
}

func (e *lineEvents) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Sprint(e.all)
}

// newLineTracing returns a tracing whose session stands in lines, and what its hook Line is told.
func newLineTracing(t *testing.T, s *redistest.Server, cfg rlock.Config) (*locktest.Tracing, *lineEvents) {
	tr := &locktest.Tracing{T: t, Ctx: within(t, 30*time.Second), Server: s, Ledger: new(locktest.Ledger)}
	told := new(lineEvents)
	cfg.Trace = tr.Ledger.Trace()
	cfg.Trace.Line = told.hook
	tr.Session, tr.Other = dial(t, s, cfg), dial(t, s, rlock.Config{Prefix: cfg.Prefix})
	tr.Ledger.Take()
	return tr, told
}

// What another session's release gives to this one is told, without the prefix of the name, and so is where
// the lock came from.
func TestTraceOfAGrantByTheLine(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr, line := newLineTracing(t, s, rlock.Config{Prefix: "app:"})
		fairlock.New(tr.Session, "y") // of the same sort
		_, h, err := rlock.New(tr.Other, "x").Lock(tr.Ctx)
		must(t, err)
		next := tr.QueueUp()
		must(t, h.Unlock())
		got := locktest.Get(t, next, 5*time.Second, "the lock")
		must(t, got.Err)
		tr.Told("acquire mutex x try false", "waiting", "acquired mutex line nested false", "hold mutex x")
		must(t, got.Hold.Unlock())
		redistest.Eventually(t, 5*time.Second, "Line", func() bool { return line.String() == "[mutex x granted]" })
		tr.Closed()
		if got := line.String(); got != "[mutex x granted]" {
			t.Errorf("the hook is told %s", got)
		}
	})
}

// A session that must ask for itself, as for a lease of its own, is told that it may, and has the lock from Redis.
func TestTraceOfACallByTheLine(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr, line := newLineTracing(t, s, rlock.Config{})
		_, h, err := rlock.New(tr.Other, "x").Lock(tr.Ctx)
		must(t, err)
		next := tr.QueueUp(rlock.Lease(20 * time.Second))
		must(t, h.Unlock())
		got := locktest.Get(t, next, 5*time.Second, "the lock")
		must(t, got.Err)
		tr.Told("acquire mutex x try false", "waiting", "acquired mutex redis nested false", "hold mutex x")
		must(t, got.Hold.Unlock())
		redistest.Eventually(t, 5*time.Second, "Line", func() bool { return line.String() == "[mutex x called]" })
		tr.Closed()
	})
}

// A round that is left to others is told as open, and so the lock is asked for. Others are connections that
// listen to the lock's channel.
func TestTraceOfAnOpenRound(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr, line := newLineTracing(t, s, rlock.Config{})
		for range 9 {
			client := s.Client(t)
			go func() {
				_ = client.Receive(tr.Ctx, client.B().Subscribe().Channel("redisson_lock__channel:{x}").Build(), func(rueidis.PubSubMessage) {})
			}()
		}
		m, open := rlock.New(tr.Other, "x"), false
		for i := 0; i < 50 && !open; i++ { // nine of ten are left to others
			_, h, err := m.Lock(tr.Ctx)
			must(t, err)
			next := tr.QueueUp()
			must(t, h.Unlock())
			got := locktest.Get(t, next, 5*time.Second, "the lock")
			must(t, got.Err)
			must(t, got.Hold.Unlock())
			redistest.Eventually(t, 5*time.Second, "Line", func() bool { return line.len() > i })
			open = strings.Contains(line.String(), "mutex x open")
		}
		if !open {
			t.Errorf("with nine others that listen the hook is told %s", line)
		}
		if tr.Ledger.Count("grant redis") == 0 {
			t.Error("nobody got the lock from Redis")
		}
		tr.Closed()
	})
}
