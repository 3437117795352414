package deadlock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A net is some sessions whose waits are what a test says.
type net struct {
	mu       sync.Mutex
	watches  map[string]*Watch
	messages int
	ctx      context.Context
	silent   bool // messages are lost
}

// bubble runs fn with some sessions, on a made-up clock.
func bubble(t *testing.T, fn func(t *testing.T, n *net), sessions ...string) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		n := &net{watches: map[string]*Watch{}, ctx: ctx}
		var background sync.WaitGroup
		start := time.Now()
		for _, id := range sessions {
			wake := make(chan time.Duration, 100)
			w := NewWatch(Config{
				Session: id, Label: id, Context: ctx, Background: &background,
				Clock:  func() time.Duration { return time.Since(start) },
				WakeAt: func(at time.Duration) { wake <- at },
			})
			n.watches[id] = w
			background.Go(func() { n.keep(w, wake) })
		}
		fn(t, n)
		cancel()
		background.Wait()
	})
}

// keep calls Seek when it is due, as a session's watchdog does.
func (n *net) keep(w *Watch, wake chan time.Duration) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for due := never; ; {
		select {
		case at := <-wake:
			due = min(due, at)
		case <-timer.C:
			due = w.Seek(w.cfg.Clock())
		case <-n.ctx.Done():
			return
		}
		timer.Reset(due - w.cfg.Clock())
	}
}

// A lockWait is a Suspect.
type lockWait struct {
	n       *net
	mu      sync.Mutex
	in      []Claim
	wants   Claim
	asked   []time.Duration // when other sessions were asked about
	ended   Cycle
	waiting *Waiting
}

// wait has a session wait for a claim inside of another.
func (n *net) wait(session string, in, wants Claim) *lockWait {
	x := &lockWait{n: n, in: []Claim{in}, wants: wants}
	x.waiting = n.watches[session].Begin(x, wants.Key, "mutex", x.in, []*Watch{n.watches[in.Session]})
	return x
}

func (x *lockWait) LiesIn(c Claim) bool { return slices.Contains(x.in, c) && x.lasts() }

func (x *lockWait) lasts() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ended == nil
}

func (x *lockWait) Holders(ask bool) []Claim {
	x.mu.Lock()
	defer x.mu.Unlock()
	if ask {
		x.asked = append(x.asked, x.n.watches[x.in[0].Session].cfg.Clock())
	}
	if x.ended != nil || !ask && x.wants.Session != x.in[0].Session {
		return nil
	}
	return []Claim{x.wants}
}

func (x *lockWait) Send(session, text string) {
	x.n.mu.Lock()
	defer x.n.mu.Unlock()
	x.n.messages++
	if to := x.n.watches[session]; to != nil && !x.n.silent {
		if err := to.Hear(text); err != nil {
			panic(err)
		}
	}
}

func (x *lockWait) End(c Cycle) {
	x.mu.Lock()
	x.ended = c
	x.mu.Unlock()
}

// times returns the whole seconds in which other sessions were asked about.
func (x *lockWait) times() (at []int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, a := range x.asked {
		if s := int(a.Seconds()); !slices.Contains(at, s) {
			at = append(at, s)
		}
	}
	return at
}

func claimOf(session string, number uint64) Claim {
	return Claim{Session: session, Number: number, Key: fmt.Sprintf("k%s%d", session, number)}
}

// A cycle within a session ends when its last wait begins: that one, at once.
func TestWatchEndsALocalCycleAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		a, b := claimOf("s", 1), claimOf("s", 2)
		first := n.wait("s", a, b)
		second := n.wait("s", b, a)
		if !first.lasts() || second.lasts() {
			t.Errorf("the first lasts: %v, the second: %v; want true, false", first.lasts(), second.lasts())
		}
		if text := second.ended.String(); !strings.Contains(text, b.Key) || !strings.Contains(text, a.Key) {
			t.Errorf("the cycle is told as %s", text)
		}
	}, "s")
}

// A cycle across sessions ends by messages, when a wait of it has lasted for a second: the
// youngest, whichever has sought.
func TestWatchEndsACycleAcrossSessions(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		a, b := claimOf("s", 1), claimOf("t", 1)
		first := n.wait("s", a, b)
		time.Sleep(100 * time.Millisecond)
		second := n.wait("t", b, a)
		time.Sleep(850 * time.Millisecond)
		synctest.Wait()
		if !second.lasts() {
			t.Error("it ended before a wait had lasted for a second")
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if !first.lasts() || second.lasts() {
			t.Errorf("the first lasts: %v, the second: %v; want true, false", first.lasts(), second.lasts())
		}
	}, "s", "t")
}

// A wait that is no part of a deadlock is followed after 1, 2, 4, … seconds, at most 16 apart,
// and not when it is over; of several for one lock one is.
func TestWatchSeeksEverMoreSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		in, other := claimOf("s", 1), claimOf("t", 1)
		n.silent = true
		x := n.wait("s", in, other)
		beside := n.wait("s", claimOf("s", 2), other)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		asked := len(x.asked) + len(beside.asked)
		got, want := append(x.times(), beside.times()...), []int{1, 2, 4, 8, 16, 32, 48}
		slices.Sort(got)
		if !slices.Equal(got, want) || asked != len(want) {
			t.Errorf("sought at %v s, want once at each of %v", got, want)
		}
		if w := n.watches["s"]; w.Len() != 2 {
			t.Errorf("%d waits are watched, want 2", w.Len())
		}
		x.waiting.Over()
		beside.waiting.Over()
		time.Sleep(time.Minute)
		synctest.Wait()
		if w := n.watches["s"]; w.Len() != 0 || len(w.inside) != 0 || len(w.sought) != 0 || w.due != never {
			t.Error("what is over is still watched")
		}
		if now := len(x.asked) + len(beside.asked); now != asked {
			t.Errorf("%d looks after the end", now-asked)
		}
	}, "s", "t")
}

// A session that closes looks for nothing more, and takes no more than so many messages at a time.
func TestWatchBoundsItsJobs(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		w := n.watches["s"]
		begun, stalled := make(chan bool), make(chan bool)
		w.mu.Lock()
		w.look(func() { close(begun); <-stalled })
		w.mu.Unlock()
		<-begun
		text, _ := (&message{kind: seek, steps: Cycle{{Wait{ID: "w", Key: "k"}, claimOf("s", 1)}}}).encode()
		for range 2 * maxJobs {
			if err := w.Hear(text); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.jobs) != maxJobs {
			t.Errorf("%d jobs wait, want %d", len(w.jobs), maxJobs)
		}
		if err := w.Hear(Prefix + "nonsense"); err == nil {
			t.Error("nonsense was taken for a message")
		}
		close(stalled)
	}, "s")
}
