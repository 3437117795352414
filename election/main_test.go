package election_test

import (
	"context"
	"os"
	"testing"
	"time"

	"relock/election"
	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		runChild(addr)
	}
	redistest.Main(m, "lua", "../rlock/lua", "../internal/redis/lua")
}

// Short names for what the tests of all kinds of lock share.
var (
	dial   = locktest.Dial
	within = locktest.Within
	must   = locktest.Must
	is     = locktest.Is
	ends   = locktest.Ends
)

var src = election.ScriptSources()

// patience is for what takes no time, but must not fail on a machine that is busy.
const patience = 20 * time.Second

// slow is a Config in which nothing happens by the clock within a test.
func slow() rlock.Config {
	return rlock.Config{Lease: time.Hour, QueueLease: time.Hour, PollFloor: time.Hour}
}

// elected is the outcome of a Campaign in a goroutine.
type elected struct {
	section context.Context
	l       *election.Leadership
	err     error
}

// campaign stands for election and returns when it is the n-th in the queue; n is 0 for one
// that leads at once.
func campaign(t testing.TB, ctx context.Context, s *rlock.Session, value string, n int) <-chan elected {
	t.Helper()
	c := make(chan elected, 1)
	go func() {
		section, l, err := election.New(s, "x").Campaign(ctx, value)
		c <- elected{section, l, err}
	}()
	if n > 0 {
		redistest.Eventually(t, patience, "the candidate to stand for election", func() bool {
			waiters, err := fairlock.New(s, "x").Waiters(context.Background())
			must(t, err)
			return waiters == n
		})
	}
	return c
}

// deserted waits until nobody stands for election.
func deserted(t testing.TB, ctx context.Context, s *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, patience, "all candidates to have left", func() bool {
		n, err := fairlock.New(s, "x").Waiters(ctx)
		must(t, err)
		return n == 0
	})
}

// left checks that nobody stands for election when Campaign has returned. A Redis that is slow to
// answer, as any on a busy machine, is told behind the campaign's end.
func left(t testing.TB, ctx context.Context, s *redistest.Server, ses *rlock.Session, stalls *locktest.Stalls) {
	t.Helper()
	n, err := fairlock.New(ses, "x").Waiters(ctx)
	must(t, err)
	deserted(t, ctx, ses)
	if n != 0 && s.Mini != nil && stalls.Longest() < 5*time.Millisecond {
		t.Errorf("%d stood for election when Campaign had returned", n)
	}
}

// leads waits until a candidate leads, in that term.
func leads(t testing.TB, c <-chan elected, term int64) elected {
	t.Helper()
	e := locktest.Get(t, c, patience, "the candidate to lead")
	must(t, e.err)
	if e.l.Term() != term {
		t.Fatalf("it leads in term %d, want %d", e.l.Term(), term)
	}
	return e
}

func waits(t testing.TB, c <-chan elected) {
	t.Helper()
	select {
	case e := <-c:
		t.Fatalf("a candidate does not wait any more: %v", e.err)
	default:
	}
}

// sees checks who leads.
func sees(t testing.TB, ctx context.Context, s *rlock.Session, term int64, value string) {
	t.Helper()
	got, err := election.New(s, "x").Leader(ctx)
	must(t, err)
	if got.Term != term || got.Value != value || got.Owner == "" {
		t.Fatalf("the leader is %+v, want term %d and value %q", got, term, value)
	}
}

// observes waits for what an observer sees next.
func observes(t testing.TB, c <-chan election.Leader, term int64, value string) {
	t.Helper()
	got := locktest.Get(t, c, patience, "an observer to see the leader "+value)
	if got.Term != term || got.Value != value {
		t.Fatalf("an observer sees %+v, want term %d and value %q", got, term, value)
	}
}
