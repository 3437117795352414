package redisson

import (
	"context"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/latch"
	"relock/rlock"
)

// latchRows: a Latch is Redisson's RCountDownLatch.
var latchRows = []row{
	{"BothCount", latchBothCount},
	{"JavaOpensGoWaits", latchJavaOpensGoWaits},
	{"GoOpensJavaWaits", latchGoOpensJavaWaits},
	{"SetAgain", latchSetAgain},
}

func sets(t testing.TB, l *latch.Latch, n int, want bool) {
	t.Helper()
	set, err := l.TrySet(t.Context(), n)
	locktest.Must(t, err)
	if set != want {
		t.Fatalf("TrySet(%d) is %v, want %v", n, set, want)
	}
}

// awaits begins to wait for a latch and returns when it waits.
func (s *side) awaits(t testing.TB, name string) <-chan got {
	return s.queue(t, name, func(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
		return ctx, nil, latch.New(s.Session, name).Await(ctx, opts...)
	})
}

func latchBothCount(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	l := latch.New(s.Session, name)
	j.want("true", "latch", name, "await") // never set
	sets(t, l, 3, true)
	j.want("false", "latch", name, "set", "5")
	j.want("3", "latch", name, "count")
	j.do("latch", name, "down")
	wantCount(t, "Count", 2, l.Count)
	locktest.Must(t, l.CountDown(t.Context()))
	j.want("1", "latch", name, "count")
	j.want("false", "latch", name, "await", "50")
	j.do("latch", name, "down")
	locktest.Must(t, l.Await(t.Context()))
	j.do("latch", name, "down") // nothing is there, and nothing comes of it
	wantCount(t, "Count", 0, l.Count)
	j.want("true", "latch", name, "set", "1")
	sets(t, l, 2, false)
	locktest.Must(t, l.CountDown(t.Context()))
	j.want("true", "latch", name, "await")
}

func latchJavaOpensGoWaits(t *testing.T, e *env) {
	name, j, s, other := redistest.Name(t), e.java.thread(t), e.session(t, patient), e.session(t, patient)
	j.want("true", "latch", name, "set", "2")
	first, second := s.awaits(t, name), other.awaits(t, name)
	j.do("latch", name, "down")
	stillWaits(t, first, "Go")
	stillWaits(t, second, "Go")
	j.do("latch", name, "down")
	woken(t, first)
	woken(t, second)
}

func latchGoOpensJavaWaits(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	l := latch.New(s.Session, name)
	sets(t, l, 2, true)
	var waiting []<-chan answer
	for i, args := range [][]string{nil, nil, {ms(patience)}} {
		j := []*peer{e.java, e.other}[i%2].thread(t)
		waiting = append(waiting, j.start("latch", name, "await", args...))
		j.waits(waiting[i])
	}
	locktest.Must(t, l.CountDown(t.Context()))
	for _, w := range waiting {
		stillWaits(t, w, "Java")
	}
	locktest.Must(t, l.CountDown(t.Context()))
	for _, w := range waiting {
		if got := wokenJava(t, w); got != "true" {
			t.Errorf("await is %s", got)
		}
	}
}

// A latch that Go sets again closes Java's gate, which Go's last count down has opened: the
// next Java waiter sleeps, and is woken again.
func latchSetAgain(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	l := latch.New(s.Session, name)
	for range 3 {
		sets(t, l, 1, true)
		j := e.java.thread(t)
		w := j.start("latch", name, "await")
		j.waits(w)
		locktest.Must(t, l.CountDown(t.Context()))
		wokenJava(t, w)
	}
}
