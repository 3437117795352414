package deadlock

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A deadlock that is found by a search of an older wait ends the youngest nevertheless.
func TestTheYoungestIsTold(t *testing.T) {
	w := &world{t: t, r: rand.New(rand.NewPCG(1, 1)), now: time.Hour, holds: map[Claim]*hold{}, depth: 9}
	for i := range 3 {
		s := &site{w: w, id: fmt.Sprint("s", i), history: map[string]*mwait{}}
		s.chaser = newChaser(s)
		w.sessions, w.callers = append(w.sessions, s), append(w.callers, &caller{site: s})
		w.locks = append(w.locks, &mlock{key: fmt.Sprint("k", i)})
		w.lock(w.callers[i], w.locks[i])
	}
	for i, c := range w.callers {
		w.now += time.Second
		w.lock(c, w.locks[(i+1)%3])
	}
	oldest := w.callers[0]
	oldest.site.chaser.Seek(oldest.wait.w)
	for len(w.post) > 0 {
		w.deliver()
	}
	if w.ended != 1 || w.callers[2].wait != nil || w.callers[0].wait == nil || w.callers[1].wait != nil {
		t.Errorf("%d victims:\n%v", w.ended, w.trail)
	}
}

// In random worlds each victim's deadlock is one, the youngest of the cycle ends, and when
// messages arrive again no deadlock is left.
func TestRandomWorlds(t *testing.T) {
	worlds, ended := 1000, 0
	if testing.Short() {
		worlds = 300
	}
	for seed := range worlds {
		w := newWorld(t, uint64(seed))
		w.lossy, w.timeouts = seed&1 != 0, seed&2 != 0
		for _, l := range w.locks {
			l.shared = seed&4 != 0
		}
		for range 150 {
			w.now += time.Duration(w.r.IntN(50)) * time.Millisecond
			switch w.r.IntN(4) {
			case 0:
				w.act()
			case 1:
				if c := w.callers[w.r.IntN(len(w.callers))]; c.wait != nil {
					c.site.chaser.Seek(c.wait.w)
				}
			default:
				w.deliver()
			}
		}
		w.lossy, w.timeouts, w.depth = false, false, 9 // nothing else happens from here on
		for range 20 {
			w.now += time.Second
			w.seekAll()
			for len(w.post) > 0 {
				w.deliver()
			}
		}
		if w.stuck() {
			t.Fatalf("world %d: a deadlock is left\n%v", seed, w.trail)
		}
		ended += w.ended
	}
	t.Logf("%d victims in %d worlds", ended, worlds)
	if ended < worlds/10 {
		t.Error("there were hardly any deadlocks")
	}
}
