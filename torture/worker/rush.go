package worker

import (
	"context"
	"runtime"
	"time"

	"relock/rlock"
	"relock/torture/oracle"
)

// rush returns a few callers for each lock, so that it is passed on inside of this process and to others.
// A lock that is at home in another worker has one caller here, which comes seldom.
func (w *worker) rush() (all []*goroutine) {
	for i := range w.Locks {
		l := &w.Locks[i]
		n, rest := w.Goroutines, time.Duration(0)
		switch l.Home - 1 {
		case -1:
		case w.Number:
			n *= crowdAtHome
		default:
			n, rest = 1, visitEvery
		}
		for range n {
			s := w.callers[0]
			all = append(all, &goroutine{session: s, mine: []int{i}, kept: w.locker(s, l), rest: rest})
		}
	}
	return all
}

// crowdAtHome is how many times more callers a lock has at home, so that one waits whenever another leaves.
const crowdAtHome = 3

// visitEvery is twice the mean time from one visit to the next, of a caller that comes seldom.
const visitEvery = time.Second

// hurry takes a lock, changes the lock's set, and passes it on at once, most of the times.
func (g *goroutine) hurry(i int) {
	spec := &g.Locks[i]
	a, flags := g.short(spec)
	ctx, done := g.running, func() {}
	if g.chance(1) {
		ctx, done = context.WithTimeout(ctx, g.upTo(3*time.Millisecond))
	}
	defer done()
	rec := g.log.Begin(oracle.Section, 0, i, 0, int64(a.n), flags)
	ctx, h, err := g.kept.lock(ctx, a)
	rec.Returned()
	if err != nil {
		rec.Settle(g.refusal(i, rec, err))
		g.sleep(g.upTo(20 * time.Millisecond))
		return
	}
	rec.Token(h.token)
	x := &section{g: g, parent: g.running, lock: i, locker: g.kept, a: a, rec: records{rec}, ctx: ctx, holds: []held{h}}
	rec.Settle(oracle.Held)
	if x.inside() {
		rec.Look(g.set, i)
		g.linger(x)
		g.change(x, rec, spec)
	}
	x.leave(flags)
	g.think()
}

// short chooses how to ask for a lock that is passed on soon.
func (g *goroutine) short(spec *Lock) (a attempt, flags uint8) {
	a, flags = g.amount(spec)
	switch p := g.rnd.IntN(100); {
	case p < 2:
		a.try = true
		flags |= oracle.Try
	case p < 4:
		a.opts = append(a.opts, rlock.Wait(g.upTo(20*time.Millisecond)))
	default:
		a.opts = append(a.opts, rlock.Wait(8*time.Second))
	}
	if g.chance(1) {
		a.opts = append(a.opts, rlock.Lease(50*time.Millisecond+g.upTo(g.Lease-50*time.Millisecond)))
		flags |= oracle.Fixed
	}
	return a, flags
}

// linger stays in the section, so that what another does meanwhile shows: hardly ever for as long as a
// lease, at times for as long as a command takes, mostly for as long as other goroutines need to run.
func (g *goroutine) linger(x *section) {
	switch p := g.rnd.IntN(100_000); {
	case p < 1 && !g.calm.Load():
		x.stay(g.upTo(g.Lease*3/2), false)
	case p < 50:
		x.stay(g.upTo(30*time.Millisecond), false)
	case p < 1000:
		x.stay(g.upTo(time.Millisecond), false)
	case p < 20_000:
		runtime.Gosched()
	}
}

// change adds the section to the set of its lock. A reader sees whether the set has stayed as it was, and
// the holders of permits have none.
func (g *goroutine) change(x *section, rec *oracle.Record, spec *Lock) {
	switch {
	case spec.Kind == Semaphore || !x.alive() || x.left() <= 0:
	case x.a.read:
		rec.LookAgain(g.set, x.lock, x.alive, x.left)
	default:
		rec.Add(g.set, x.lock, x.alive, x.left)
	}
}

// think lets the session go to the end of the line at times.
func (g *goroutine) think() {
	switch {
	case g.rest > 0:
		g.sleep(g.upTo(g.rest))
	case g.chance(2):
		g.sleep(g.upTo(time.Millisecond))
	}
}
