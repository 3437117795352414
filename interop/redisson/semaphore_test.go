package redisson

import (
	"context"
	"strconv"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// semaphoreRows: a Counter is Redisson's RSemaphore.
var semaphoreRows = []row{
	{"TakenHereGivenThere", counterTakenHereGivenThere},
	{"JavaGivesGoWaits", counterJavaGivesGoWaits},
	{"GoGivesJavaWaits", counterGoGivesJavaWaits},
	{"BelowZero", counterBelowZero},
}

// takes begins to wait for n of a counter and returns when it waits.
func (s *side) takes(t testing.TB, name string, c *semaphore.Counter, n int) <-chan got {
	return s.queue(t, name, func(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
		return ctx, nil, c.Acquire(ctx, n, opts...)
	})
}

func wantCount(t testing.TB, what string, want int, count func(context.Context) (int, error)) {
	t.Helper()
	n, err := count(t.Context())
	locktest.Must(t, err)
	if n != want {
		t.Fatalf("%s: %d, want %d", what, n, want)
	}
}

func counterTakenHereGivenThere(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	c := semaphore.NewCounter(s.Session, name)
	j.want("true", "semaphore", name, "set", "5")
	made, err := c.TrySet(t.Context(), 7)
	locktest.Must(t, err)
	if made {
		t.Fatal("TrySet has overwritten Java's permits")
	}
	locktest.Must(t, c.Acquire(t.Context(), 3))
	j.want("2", "semaphore", name, "available")
	j.want("false", "semaphore", name, "try", "3")
	j.do("semaphore", name, "acquire", "2")
	locktest.Is(t, "TryAcquire", c.TryAcquire(t.Context(), 1), rlock.ErrNotAcquired)
	j.do("semaphore", name, "release", "3") // what Go has taken
	locktest.Must(t, c.Release(t.Context(), 2))
	wantCount(t, "Available", 5, c.Available)
	j.want("5", "semaphore", name, "drain")
	wantCount(t, "Available", 0, c.Available)
}

func counterJavaGivesGoWaits(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	c := semaphore.NewCounter(s.Session, name)
	large := s.takes(t, name, c, 3)
	j.do("semaphore", name, "release", "1") // makes it; not enough yet
	redistest.Eventually(t, answerTimeout, "Go has looked", func() bool { return s.attempts(name) >= 3 })
	stillWaits(t, large, "Go")
	j.do("semaphore", name, "add", "2")
	woken(t, large)

	// One message for several waiters, of one session and of another.
	s2 := e.session(t, patient)
	s2.behind = true
	first, other := s.takes(t, name, c, 1), s2.takes(t, name, semaphore.NewCounter(s2.Session, name), 1)
	second := make(chan error, 1)
	go func() { second <- c.Acquire(context.Background(), 1) }()
	j.do("semaphore", name, "release", "3")
	woken(t, first)
	woken(t, other)
	locktest.Must(t, locktest.Get(t, second, wokenWithin, "the message wakes the next in the line"))
}

func counterGoGivesJavaWaits(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	c := semaphore.NewCounter(s.Session, name)
	var waiting []<-chan answer
	for i := range 4 { // two threads of each process, for 1 and for 2
		j := []*peer{e.java, e.other}[i%2].thread(t)
		waiting = append(waiting, j.start("semaphore", name, "acquire", strconv.Itoa(1+i/2)))
		j.waits(waiting[i])
	}
	locktest.Must(t, c.Release(t.Context(), 6))
	for _, w := range waiting {
		wokenJava(t, w)
	}
	wantCount(t, "Available", 0, c.Available)

	j := e.java.thread(t)
	w := j.start("semaphore", name, "acquire", "1")
	j.waits(w)
	locktest.Must(t, c.Add(t.Context(), 1))
	wokenJava(t, w)
	w = j.start("semaphore", name, "try", "2", ms(patience))
	j.waits(w)
	locktest.Must(t, c.Release(t.Context(), 2))
	if got := wokenJava(t, w); got != "true" {
		t.Fatalf("tryAcquire is %s", got)
	}
}

// Both sides let the number fall below zero, and waiters of both bear it.
func counterBelowZero(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	c := semaphore.NewCounter(s.Session, name)
	locktest.Must(t, c.Add(t.Context(), 1))
	mine, theirs := s.takes(t, name, c, 2), j.start("semaphore", name, "acquire", "2")
	j.waits(theirs)
	locktest.Must(t, c.Add(t.Context(), -4))
	e.other.thread(t).do("semaphore", name, "add", "-1")
	wantCount(t, "Available", -4, c.Available)
	stillWaits(t, mine, "Go")
	stillWaits(t, theirs, "Java")
	locktest.Must(t, c.Add(t.Context(), 8))
	woken(t, mine)
	wokenJava(t, theirs)
	wantCount(t, "Available", 0, c.Available)
}
