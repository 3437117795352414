package rlock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

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
func newLineTracing(t *testing.T, s *redistest.Server, cfg rlock.Config) (*tracing, *lineEvents) {
	tr := &tracing{t: t, ctx: within(t, 30*time.Second), server: s, ledger: new(locktest.Ledger)}
	told := new(lineEvents)
	cfg.Trace = tr.ledger.Trace()
	cfg.Trace.Line = told.hook
	tr.ses, tr.other = dial(t, s, cfg), dial(t, s, rlock.Config{Prefix: cfg.Prefix})
	tr.ledger.Take()
	return tr, told
}

// queueUp has a caller of the session wait in the line. It returns when that has asked again, as the first
// of the line does once: no attempt is on its way then.
func (tr *tracing) queueUp(opts ...rlock.LockOption) <-chan faultLocked {
	tr.t.Helper()
	before := tr.ledger.Count("attempt false")
	got := make(chan faultLocked, 1)
	go func() {
		section, h, err := rlock.New(tr.ses, "x").Lock(tr.ctx, opts...)
		got <- faultLocked{ctx: section, hold: h, err: err}
	}()
	redistest.Eventually(tr.t, 5*time.Second, "a second refusal", func() bool { return tr.ledger.Count("attempt false") == before+2 })
	return got
}

// What another session's release gives to this one is told, without the prefix of the name, and so is where
// the lock came from.
func TestTraceOfAGrantByTheLine(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr, line := newLineTracing(t, s, rlock.Config{Prefix: "app:"})
		_, h, err := rlock.New(tr.other, "x").Lock(tr.ctx)
		must(t, err)
		next := tr.queueUp()
		must(t, h.Unlock())
		got := locktest.Get(t, next, 5*time.Second, "the lock")
		must(t, got.err)
		tr.told("acquire mutex x try false", "waiting", "acquired mutex line nested false", "hold mutex x")
		must(t, got.hold.Unlock())
		redistest.Eventually(t, 5*time.Second, "Line", func() bool { return line.String() == "[mutex x granted]" })
		tr.closed()
		if got := line.String(); got != "[mutex x granted]" {
			t.Errorf("the hook is told %s", got)
		}
	})
}

// A session that must ask for itself, as for a lease of its own, is told that it may, and has the lock from Redis.
func TestTraceOfACallByTheLine(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		tr, line := newLineTracing(t, s, rlock.Config{})
		_, h, err := rlock.New(tr.other, "x").Lock(tr.ctx)
		must(t, err)
		next := tr.queueUp(rlock.Lease(20 * time.Second))
		must(t, h.Unlock())
		got := locktest.Get(t, next, 5*time.Second, "the lock")
		must(t, got.err)
		tr.told("acquire mutex x try false", "waiting", "acquired mutex redis nested false", "hold mutex x")
		must(t, got.hold.Unlock())
		redistest.Eventually(t, 5*time.Second, "Line", func() bool { return line.String() == "[mutex x called]" })
		tr.closed()
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
				_ = client.Receive(tr.ctx, client.B().Subscribe().Channel("redisson_lock__channel:{x}").Build(), func(rueidis.PubSubMessage) {})
			}()
		}
		m, open := rlock.New(tr.other, "x"), false
		for i := 0; i < 50 && !open; i++ { // nine of ten are left to others
			_, h, err := m.Lock(tr.ctx)
			must(t, err)
			next := tr.queueUp()
			must(t, h.Unlock())
			got := locktest.Get(t, next, 5*time.Second, "the lock")
			must(t, got.err)
			must(t, got.hold.Unlock())
			redistest.Eventually(t, 5*time.Second, "Line", func() bool { return line.len() > i })
			open = strings.Contains(line.String(), "mutex x open")
		}
		if !open {
			t.Errorf("with nine others that listen the hook is told %s", line)
		}
		if tr.ledger.Count("grant redis") == 0 {
			t.Error("nobody got the lock from Redis")
		}
		tr.closed()
	})
}
