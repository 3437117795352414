package deadlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
				Env: life.Env{
					Context: ctx, Background: &background, Log: slog.New(slog.DiscardHandler),
					Clock:  func() time.Duration { return time.Since(start) },
					WakeAt: func(at time.Duration) { wake <- at },
				},
				Session: id, Label: id,
				Deaf:   func() bool { return n.deaf[id] },
				Fields: func(_ context.Context, key string) (map[string]string, error) { return n.fields(id, key) },
				Tell:   func(_ context.Context, session, text string) error { return n.tell(session, text) },
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
