package locktest

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/internal/waiting"
	"relock/rlock"
)

// A LockFunc is the Lock of a mutex, or that of a side of a read-write lock.
type LockFunc = func(context.Context, ...rlock.LockOption) (context.Context, *rlock.Hold, error)

// A Circle is sessions that pass a lock on from one to the next.
type Circle struct {
	Lock    func(*rlock.Session) LockFunc
	Channel string // of the lock
	Want    int    // how many commands a hand-over is to cost: no more are made when one does
}

// Cost has so many sessions pass the lock on, and returns how many commands Redis runs for the cheapest hand-over, the
// scripts included: one session releases the lock and waits for it once more, and the next one has it.
func (c Circle) Cost(t *testing.T, s *redistest.Server, n int) int {
	t.Helper()
	trace, parked := Waiting()
	stalls := WatchStalls(t)
	ctx, end := context.WithCancel(Within(t, 2*time.Minute))
	defer end()
	// Who enters says by what channel it is told to unlock, and lock once more.
	entered, left, lost := make(chan chan<- struct{}, n), make(chan error, n), make(chan struct{}, 1)
	for range n {
		lock := c.Lock(Dial(t, s, rlock.Config{Trace: trace, QueueLease: time.Hour, PollFloor: time.Hour}))
		go func() { left <- turns(ctx, t, stalls, lock, entered, lost) }()
	}
	get := func() chan<- struct{} {
		return getUnless(t, lost, entered, "the next one to have the lock")
	}
	waits := func(who string) { getUnless(t, lost, parked, who) }
	in := get()
	for range n - 1 {
		waits("the others to wait")
	}
	// passOn reports whether another one has the lock then. Where all the others are slow, it is the one before again.
	passOn := func() bool {
		before := in
		before <- struct{}{}
		if in = get(); in != before {
			waits("the one before to wait again")
			return true
		}
		select {
		case <-parked: // it may have waited before it came in
		default:
		}
		return false
	}
	// Who is the first for 5 ms listens to the lock's channel, and for a while after that: nobody is in this circle.
	for listens := true; listens; time.Sleep(time.Millisecond) {
		passOn()
		n, err := s.Do(t, "PUBSUB", "NUMSUB", c.Channel).AsIntMap()
		Must(t, err)
		listens = n[c.Channel] > 0
	}
	// On a busy machine few sessions may all be slow takers: one in a hundred of their hand-overs costs no more then.
	cheapest := 1 << 30
	for i, began := 0, time.Now(); i < 64 || i < 2000 && cheapest > c.Want && time.Since(began) < 45*time.Second; i++ {
		before := Commands(t, s)
		if passOn() {
			cheapest = min(cheapest, Commands(t, s)-before)
		}
	}
	end()
	for range n {
		Get(t, left, 20*time.Second, "all to leave")
	}
	return cheapest
}

// turns locks and unlocks, when it is told to, until ctx ends, and returns what Lock says then. It tells of a lock that
// was lost since the machine stood still.
func turns(ctx context.Context, t *testing.T, stalls *Stalls, lock LockFunc, entered chan<- chan<- struct{}, lost chan<- struct{}) error {
	pass := make(chan struct{})
	for {
		_, h, err := lock(ctx)
		if err != nil {
			return err
		}
		entered <- pass
		select {
		case <-pass:
		case <-ctx.Done():
		}
		if err := h.Unlock(); stalls.Excuse(err, waiting.GrantLease) {
			select {
			case lost <- struct{}{}:
			default:
			}
		} else if err != nil {
			t.Error(err)
		}
	}
}

// getUnless is Get, but skips the test if what a message gave was lost: then the circle is broken, and who is in once more
// did not wait.
func getUnless[T any](t *testing.T, lost <-chan struct{}, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-lost:
		t.Skip("the machine stood still for longer than a lock is kept that was given by a message")
	case <-time.After(20 * time.Second):
		t.Fatalf("not within 20s: %s", what)
	}
	return v
}

// Commands returns how many commands the server has run, those of scripts and the scripts themselves, but for those
// by which it is asked that.
func Commands(t *testing.T, s *redistest.Server) (n int) {
	t.Helper()
	if s.IsMini() {
		return s.Mini.CommandCount()
	}
	for name, calls := range s.Commands(t) {
		switch name {
		case "info", "ping", "hello", "client|setinfo":
		default:
			n += calls
		}
	}
	return n
}
