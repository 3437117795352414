package check_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"relock/torture/check"
	"relock/torture/nemesis"
	"relock/torture/oracle"
	"relock/torture/worker"
)

// tick is the unit of the times of made-up histories.
const tick = time.Millisecond

// made is a history of one lock as two processes could have written it down, with the set of the lock.
type made struct {
	kind  worker.Kind
	limit int
	all   []oracle.Entry // in the order of entering
	head  uint64
}

// live has a lock of a kind serve n sections: each takes it, and gives it back, at a moment between the times
// that it writes down. Some processes are killed inside, some releases are not confirmed.
func live(rnd *rand.Rand, kind worker.Kind, n int) *made {
	m := &made{kind: kind, limit: 3}
	var open []int // in all
	now, token := 100*tick, int64(0)
	for len(m.all) < n {
		now += tick
		e := oracle.Entry{Kind: oracle.Section, Outcome: oracle.Released, N: 1, Change: oracle.Change{ID: uint64(len(m.all) + 1)}}
		if kind == worker.Semaphore {
			e.N = 1 + rnd.Int64N(int64(m.limit))
		}
		if kind == worker.RW && len(m.all)%6 < 4 { // writers come, so that the history can be cut
			e.Flags = oracle.Read
		}
		if !m.room(open, &e) || len(open) > 0 && rnd.IntN(3) == 0 {
			i := rnd.IntN(len(open))
			m.gives(rnd, &m.all[open[i]], now)
			open = slices.Delete(open, i, i+1)
			continue
		}
		if kind == worker.Fenced {
			token += 1 + rnd.Int64N(3)
			e.Token = token
		}
		e.Call, e.Got, e.In = now-time.Duration(rnd.IntN(5))*tick, now+tick*3/10, now+tick*4/10
		e.Safe, e.Seen = e.In, e.In
		e.Saw = m.head
		open, m.all = append(open, len(m.all)), append(m.all, e)
	}
	for _, i := range open {
		now += tick
		m.gives(rnd, &m.all[i], now)
	}
	return m
}

// room reports whether a section can be let in beside those that are open.
func (m *made) room(open []int, e *oracle.Entry) bool {
	out := e.N
	for _, i := range open {
		out += m.all[i].N
		if m.kind != worker.Semaphore && !(e.Has(oracle.Read) && m.all[i].Has(oracle.Read)) {
			return false
		}
	}
	return m.kind != worker.Semaphore || out <= int64(m.limit)
}

// gives has a section give the lock back.
func (m *made) gives(rnd *rand.Rand, e *oracle.Entry, now time.Duration) {
	e.Safe = e.In + time.Duration(rnd.Int64N(int64(now-tick/10-e.In)))
	e.Seen, e.End = e.Safe, e.Safe
	e.Tried, e.Replaced, e.Added = e.Safe, e.Saw, e.Safe
	if e.Has(oracle.Read) {
		e.Tried = 0
	} else {
		m.head = e.ID
	}
	switch rnd.IntN(20) {
	case 0:
		e.Outcome, e.End = oracle.Pending, 0 // killed, when it had changed the set and had not seen that it stood
		e.Added = 0
	case 1:
		e.Outcome, e.Flags, e.Over = oracle.Unknown, e.Flags|oracle.Outage, now+3*tick
	default:
		e.Over = now + time.Duration(1+rnd.IntN(3))*tick
	}
}

// found returns what the checks find in it, if the two processes wrote it down in turns, by the names of the
// checks, and how many stretches porcupine was given.
func (m *made) found(faults ...nemesis.Fault) (all map[string]bool, stretches int) {
	r := &check.Round{
		Locks:     []worker.Lock{{Kind: m.kind, Name: "x", Limit: m.limit}},
		Processes: []check.Process{{Worker: 0, Session: "a", Lease: 4 * s, Killed: true}, {Worker: 1, Session: "b", Lease: 4 * s, Killed: true}},
		Faults:    append(faults, nemesis.Fault{Worker: nemesis.All, End: 1000 * s}), MaxLease: 4 * s,
		Heads: []uint64{m.head}, Histories: true,
	}
	for i, e := range m.all {
		p := &r.Processes[i%2]
		p.Entries = append(p.Entries, e)
	}
	res := check.Run(r)
	all = map[string]bool{}
	for _, v := range res.Violations {
		all[v.Check] = !v.Tolerated
	}
	return all, res.Counts["stretches of histories"]
}

// breaks are what a broken lock would leave in a history, and what finds it. Each changes the section v, which
// is followed by others.
var breaks = []struct {
	name  string
	kinds []worker.Kind
	wrong func(m *made, v *oracle.Entry)
	found []string
}{
	{"a double grant", []worker.Kind{worker.Mutex, worker.Fenced}, stays, []string{"history", "exclusion"}},
	{"a permit over the limit", []worker.Kind{worker.Semaphore}, stays, []string{"history", "exclusion"}},
	{"a reader beside a writer", []worker.Kind{worker.RW}, func(m *made, v *oracle.Entry) { v.Flags |= oracle.Read; stays(m, v) }, []string{"history", "exclusion"}},
	{"a writer beside a reader", []worker.Kind{worker.RW}, func(m *made, v *oracle.Entry) { v.Flags &^= oracle.Read; stays(m, v) }, []string{"history", "exclusion"}},
	{"a token that goes back", []worker.Kind{worker.Fenced}, func(m *made, v *oracle.Entry) { v.Token -= 4 }, []string{"history", "tokens grow"}},
	{"a token twice", []worker.Kind{worker.Fenced}, func(m *made, v *oracle.Entry) { v.Token = m.all[v.ID-2].Token }, []string{"history", "tokens grow"}},
	{"a lost write", []worker.Kind{worker.Mutex, worker.Fenced, worker.RW}, loses, []string{"lost from the set"}},
	{"a set that changes under a reader", []worker.Kind{worker.RW}, func(m *made, v *oracle.Entry) {
		v.Flags, v.Tried, v.Replaced, v.Added = v.Flags|oracle.Read, 0, v.Saw+1, v.Safe
	}, []string{"a writer beside a reader"}},
}

// stays has a section stand until another one stands that leaves it no room.
func stays(m *made, v *oracle.Entry) {
	for _, e := range m.all[v.ID+1:] {
		if alone := m.kind != worker.Semaphore && !e.Has(oracle.Read); alone || e.N == int64(m.limit) {
			v.Outcome, v.Safe, v.Over = oracle.Released, e.In+tick/100, e.In+tick
			return
		}
	}
}

// loses has the next section that changes the set change what it was before a change of v.
func loses(m *made, v *oracle.Entry) {
	for i := range m.all {
		if e := &m.all[i]; e.Tried != 0 && e.Saw == v.ID {
			e.Saw, v.Added = v.Saw, v.Safe
		}
	}
}

// In a history of a lock that works nothing is found, however it is cut; each break is.
func TestHistoriesOfBrokenLocks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		for _, b := range breaks {
			for _, kind := range b.kinds {
				rnd := rand.New(rand.NewPCG(seed, 0))
				m := live(rnd, kind, 200)
				if found, stretches := m.found(); len(found) > 0 || stretches < 2 {
					t.Fatalf("seed %d: %v found in a history of a %s that works, of %d stretches", seed, found, kind, stretches)
				}
				b.wrong(m, m.changes(1+rnd.IntN(150)))
				found, _ := m.found()
				for _, want := range b.found {
					if !found[want] {
						t.Errorf("seed %d: %s of a %s: found %v, want %q", seed, b.name, kind, found, b.found)
					}
				}
				for name, blamed := range first(m.found(nemesis.Fault{Worker: nemesis.All, Loss: true, End: 1000 * s})) {
					if blamed {
						t.Errorf("seed %d: %s of a %s, when data was lost: %q is not tolerated", seed, b.name, kind, name)
					}
				}
			}
		}
	}
}

func first[T, U any](v T, _ U) T { return v }

// changes returns a section from the i-th on that has changed the set, or one with permits.
func (m *made) changes(i int) *oracle.Entry {
	for ; m.all[i].Tried == 0; i++ {
	}
	return &m.all[i]
}

// What a process does that did not run between the last look at its section and its change of the set is not
// the lock's fault. The same without a stop is.
func TestASetThatWasChangedLate(t *testing.T) {
	t.Parallel()
	m := live(rand.New(rand.NewPCG(1, 0)), worker.Mutex, 50)
	// The 11th has looked before the 12th changed the set, and writes behind the 20th what lets it forget those between.
	late, next := &m.all[10], &m.all[20]
	m.all[11].Saw = late.Saw
	for i := range m.all[:20] {
		m.all[i].Added = cmp.Or(m.all[i].Added, m.all[i].Safe)
	}
	late.Tried, late.Replaced, late.Added = m.all[19].Over, m.all[19].ID, 0
	next.Saw = late.ID
	if found, _ := m.found(); !found["lost from the set"] {
		t.Errorf("found %v, want what was lost", found)
	}
	stopped := nemesis.Fault{Worker: 0, Pause: true, Begin: late.Safe, End: late.Tried}
	if found, _ := m.found(stopped); len(found) > 0 {
		t.Errorf("found %v although the process was stopped", found)
	}
}
