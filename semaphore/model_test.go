package semaphore_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"relock/internal/test/modeltest"
	"relock/rlock"
	"relock/semaphore"
)

// Random operations on one semaphore, by three processes that come and go, against a
// model: who has which permits and until when, what each call may return, that free and
// taken permits add up to the limit whenever the world is quiet, and who may wait.
func TestRandomAgainstModel(t *testing.T) {
	t.Parallel()
	found := []uint64{
		11061716304964401021, // who comes in front of one that was passed over sees to what expires
		9562832940052757330,  // Available takes back what has expired, and lets in who waits, before it counts
		1033987650970393911,  // a caller in front does not stand in the line, whose entry went with that of another number
	}
	modeltest.Run(t, modeltest.Config{Seeds: 8, Found: found}, func(w *modeltest.World) modeltest.Model {
		w.Keep = append(w.Keep, modelName, zset(modelName)) // Left looks at them
		return &permitModel{queue: queue{w: w}, handles: map[handleKey]*semaphore.Semaphore{}, owners: map[string]bool{},
			passes: map[*rlock.Session]int{}}
	})
}

const modelName = "model"

// permitModel is the model of a Semaphore.
type permitModel struct {
	queue
	exists  bool      // the number of free permits does
	total   int       // free and taken ones, while it exists
	highest int       // limit that there ever was
	untold  time.Time // when something was deleted, of which nobody is told
	reaped  int       // permits that have expired, of which a first of the line that does not listen yet was not told
	gone    bool      // at the last look it did not exist
	rest    time.Time // until then nobody new comes, who would make it again
	sets    []*permitSet
	spent   []*permitSet           // released
	owners  map[string]bool        // that there ever were
	passes  map[*rlock.Session]int // hand-overs since the last grant by Redis
	handles map[handleKey]*semaphore.Semaphore
}

type handleKey struct {
	s     *rlock.Session
	limit int
}

// limit is that of a semaphore for a handle that may make it.
func (m *permitModel) limit(own int) int {
	if m.exists {
		return m.total
	}
	return own
}

// free returns how many permits are free for that handle; it may be below 0.
func (m *permitModel) free(own int) int {
	n := m.limit(own)
	for _, s := range m.sets {
		if s.alive() {
			n -= s.n
		}
	}
	return n
}

// held returns what the callers in the process on seat have not released yet.
func (m *permitModel) held(seat *modeltest.Seat) (all []*permitSet) {
	for _, s := range m.sets {
		if s.seat == seat && s.life == seat.Life && !s.dead && !s.spent {
			all = append(all, s)
		}
	}
	return all
}

func (m *permitModel) pick(r *rand.Rand, a *modeltest.Actor) *permitSet {
	all := m.held(a.Seat)
	if len(all) == 0 {
		return nil
	}
	return all[r.IntN(len(all))]
}

func (m *permitModel) handle(seat *modeltest.Seat, limit int) *semaphore.Semaphore {
	key := handleKey{seat.Session, limit}
	if m.handles[key] == nil {
		m.handles[key] = semaphore.New(seat.Session, modelName, limit)
		m.highest = max(m.highest, limit)
	}
	return m.handles[key]
}

// Release gives one thing back.
func (m *permitModel) Release() bool {
	if m.cancelFirst() {
		return true
	}
	for _, seat := range m.w.Seats {
		if all := m.held(seat); seat.Session != nil && len(all) > 0 {
			m.release(seat.Actors[0], all[0])
			return true
		}
	}
	return false
}

// Left: all permits are free, and no taken ones are left when somebody has looked.
func (m *permitModel) Left() {
	for _, s := range m.w.Seats {
		if s.Session == nil {
			continue
		}
		n, err := m.handle(s, 5).Available(context.Background())
		if want := max(0, m.limit(5)); n != want || err != nil {
			m.w.Failf("in the end %d are available (%v), and the limit is %d", n, err, want)
		}
		if m.w.Redis.Exists(zset(modelName)) {
			m.w.Failf("taken permits are left in the end")
		}
	}
}

// Gone: what a closed process held is released; what a killed one held stands until its
// lease is over.
func (m *permitModel) Gone(seat *modeltest.Seat, killed bool) {
	for _, s := range m.held(seat) {
		switch {
		case killed:
			s.dead, m.killed = true, true
		case s.over == nil:
			s.over = rlock.ErrClosed
			s.there = s.there && !s.alive()
		default:
			s.mayGo = true // Close releases what is left of those that were lost, unless that is about to end by itself
		}
	}
}
