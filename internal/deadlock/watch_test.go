package deadlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"relock/internal/inbox"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/clock"
	"relock/internal/life"
)

// A net is some sessions whose waits are what a test says.
type net struct {
	mu      sync.Mutex
	watches map[string]*Watch
	ctx     context.Context
	silent  bool            // messages are lost
	deaf    map[string]bool // sessions

	told   int                        // messages
	during func()                     // called while Redis is asked
	asked  map[string][]time.Duration // when sessions have asked their Redis for keys, by "session key"
	holds  map[string]string          // the owners of locks, by key
}

// fields is a session's Redis.
func (n *net) fields(session, key string) (map[string]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.during != nil {
		n.during()
	}
	n.asked[session+" "+key] = append(n.asked[session+" "+key], n.watches[session].cfg.Clock())
	return map[string]string{n.holds[key]: "1"}, nil
}

// tell sends a message to a session.
func (n *net) tell(session, text string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.told++; n.silent {
		return errors.New("silence")
	}
	if to := n.watches[session]; to != nil {
		if err := to.Hear(text); err != nil {
			panic(err)
		}
	}
	return nil
}

// bubble runs fn with some sessions, on a made-up clock.
func bubble(t *testing.T, fn func(t *testing.T, n *net), sessions ...string) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		n := &net{watches: map[string]*Watch{}, ctx: ctx, asked: map[string][]time.Duration{}, holds: map[string]string{}}
		var background life.Group
		start := time.Now()
		for _, id := range sessions {
			wake := make(chan time.Duration, 100)
			w := NewWatch(Config{
				Session: id, Label: id, Context: ctx, Background: &background,
				Clock:  func() time.Duration { return time.Since(start) },
				WakeAt: func(at time.Duration) { wake <- at },
				Deaf:   func() bool { return n.deaf[id] },
				Fields: func(_ context.Context, key string) (map[string]string, error) { return n.fields(id, key) },
				Tell:   func(_ context.Context, session, text string) error { return n.tell(session, text) },
				Failed: func(err error) { t.Log(err) },
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
	for due := clock.Never; ; {
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
	session string
	wants   Claim
	ended   Cycle
	waiting *Waiting
}

// wait has a session wait for a claim inside of another.
func (n *net) wait(session string, in, wants Claim) *lockWait {
	x := &lockWait{n: n, session: session, in: []Claim{in}, wants: wants}
	n.mu.Lock()
	n.holds[wants.Key] = wants.owner()
	n.mu.Unlock()
	x.waiting = n.watches[session].Begin(x, wants.Key, "mutex", x.in, []*Watch{n.watches[in.Session]})
	return x
}

func (x *lockWait) LiesIn(c Claim) bool { return slices.Contains(x.in, c) && x.lasts() }

func (x *lockWait) lasts() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ended == nil
}

func (x *lockWait) Holders() (here []Claim, blockers func(map[string]string) []string, lasts bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended != nil {
		return nil, nil, false
	}
	if x.wants.Session == x.session {
		return []Claim{x.wants}, nil, true
	}
	return nil, func(fields map[string]string) []string { return slices.Collect(maps.Keys(fields)) }, true
}

func (x *lockWait) End(c Cycle) {
	x.mu.Lock()
	x.ended = c
	x.mu.Unlock()
}

// times returns the seconds after the start at which a session has asked its Redis for a key.
func (n *net) times(session, key string) (at []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.asked[session+" "+key] {
		at = append(at, int(a.Seconds()))
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
		if got, want := n.times("s", other.Key), []int{1, 2, 4, 8, 16, 32, 48}; !slices.Equal(got, want) {
			t.Errorf("sought at %v s, want once at each of %v", got, want)
		}
		if w := n.watches["s"]; w.Len() != 2 {
			t.Errorf("%d waits are watched, want 2", w.Len())
		}
		x.waiting.Over()
		beside.waiting.Over()
		time.Sleep(time.Minute)
		synctest.Wait()
		if w := n.watches["s"]; w.Len() != 0 || len(w.inside) != 0 || len(w.sought) != 0 || w.due != clock.Never {
			t.Error("what is over is still watched")
		}
		if got := n.times("s", other.Key); len(got) != 7 {
			t.Errorf("%d looks after the end", len(got)-7)
		}
	}, "s", "t")
}

// What has to do with a wait goes by way of the Redis of the session that waits, also if another
// session of the process looks: the two may be sessions of two Redises.
func TestWatchAsksTheRedisOfTheOneThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		a, b := claimOf("s", 1), claimOf("u", 1)
		first := n.wait("u", b, a)
		time.Sleep(100 * time.Millisecond)
		second := n.wait("t", a, b) // of t, in a section of s
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !first.lasts() || second.lasts() {
			t.Errorf("they last: %v, %v; want true, false", first.lasts(), second.lasts())
		}
		if at := n.times("s", b.Key); at != nil {
			t.Errorf("s, where no Lock waits, has asked at %v", at)
		}
	}, "s", "t", "u")
}

// A wait that ends while Redis is asked who keeps it out is not followed.
func TestWatchOfAWaitThatEndsWhileRedisIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		a, b := claimOf("s", 1), claimOf("t", 1)
		x := n.wait("s", a, b)
		n.mu.Lock()
		n.during = func() { x.End(Cycle{{}}) }
		n.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		if at := n.times("s", b.Key); len(at) != 1 || n.told != 0 {
			t.Errorf("asked at %v s, and sent %d messages; want it asked once, and no message", at, n.told)
		}
	}, "s", "t")
}

// A session that cannot be told anything asks no other.
func TestWatchOfADeafSession(t *testing.T) {
	bubble(t, func(t *testing.T, n *net) {
		n.deaf = map[string]bool{"s": true}
		a, b := claimOf("s", 1), claimOf("t", 1)
		x := n.wait("s", a, b)
		time.Sleep(time.Minute)
		synctest.Wait()
		if at := n.times("s", b.Key); at != nil || !x.lasts() {
			t.Errorf("it has asked at %v; the wait lasts: %v", at, x.lasts())
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
		if err := w.Hear(inbox.Deadlock + "nonsense"); err == nil {
			t.Error("nonsense was taken for a message")
		}
		close(stalled)
	}, "s")
}
