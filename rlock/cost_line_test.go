package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// handOverCommands are two scripts, and what they call.
const handOverCommands = 2 + 16

// What a lock costs that passes from session to session does not depend on how many wait for it: two scripts, and
// 16 commands in them (R15). Now and then a script clears up, or a session that has waited for a while listens to the
// lock's channel: the cheapest of several hand-overs is without that.
func TestAHandOverCostsTheSameHoweverManySessionsWait(t *testing.T) {
	for name, mutex := range map[string]func(s *rlock.Session) *rlock.Mutex{
		"plain": func(s *rlock.Session) *rlock.Mutex { return rlock.New(s, "x") },
		"fair":  func(s *rlock.Session) *rlock.Mutex { return fairlock.New(s, "x").Mutex },
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				few, many := handOverCost(t, s, 4, mutex), handOverCost(t, s, 64, mutex)
				if few != handOverCommands || many != handOverCommands {
					t.Errorf("with 4 sessions a hand-over costs %d commands, with 64 %d; want %d", few, many, handOverCommands)
				}
			})
		})
	}
}

// handOverCost has so many sessions pass the lock on in a circle, and returns how many commands Redis runs for the
// cheapest hand-over, the scripts included: one session releases the lock and waits for it once more, and the next one has it.
func handOverCost(t *testing.T, s *redistest.Server, n int, mutex func(s *rlock.Session) *rlock.Mutex) int {
	t.Helper()
	trace, waiting := locktest.Waiting()
	ctx, end := context.WithCancel(within(t, time.Minute))
	// Who enters says by what channel it is told to unlock, and lock once more.
	const channel = "redisson_lock__channel:{x}"
	entered, left := make(chan chan<- struct{}, n), make(chan error, n)
	for range n {
		m := mutex(dial(t, s, rlock.Config{Trace: trace, QueueLease: time.Hour, PollFloor: time.Hour}))
		go func() {
			pass := make(chan struct{})
			for {
				_, h, err := m.Lock(ctx)
				if err != nil {
					left <- err
					return
				}
				entered <- pass
				<-pass
				must(t, h.Unlock())
			}
		}()
	}
	get := func() chan<- struct{} {
		return locktest.Get(t, entered, 20*time.Second, "the next one to have the lock")
	}
	waits := func(who string) { locktest.Get(t, waiting, 20*time.Second, who) }
	in := get()
	for range n - 1 {
		waits("the others to wait")
	}
	passOn := func() {
		in <- struct{}{}
		in = get()
		waits("the one before to wait again")
	}
	// Who is the first for 5 ms listens to the lock's channel, and for a while after that: nobody is in this circle.
	for listens := true; listens; time.Sleep(time.Millisecond) {
		passOn()
		n, err := s.Do(t, "PUBSUB", "NUMSUB", channel).AsIntMap()
		must(t, err)
		listens = n[channel] > 0
	}
	cheapest := 1 << 30
	for i, began := 0, time.Now(); i < 64 || i < 10_000 && cheapest > handOverCommands && time.Since(began) < 10*time.Second; i++ {
		before := commands(t, s)
		passOn()
		cheapest = min(cheapest, commands(t, s)-before)
	}
	end()
	in <- struct{}{}
	for range n {
		locktest.Get(t, left, 20*time.Second, "all to leave")
	}
	return cheapest
}

// commands returns how many commands the server has run, those of scripts and the scripts themselves, but for those
// by which it is asked that.
func commands(t *testing.T, s *redistest.Server) (n int) {
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
