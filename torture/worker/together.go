package worker

import (
	"context"
	"time"

	"relock/multilock"
	"relock/torture/oracle"
)

// records are those of one section of several locks.
type records []*oracle.Record

func (all records) each(fn func(*oracle.Record)) {
	for _, r := range all {
		fn(r)
	}
}

func (all records) Returned()               { all.each((*oracle.Record).Returned) }
func (all records) Ending()                 { all.each((*oracle.Record).Ending) }
func (all records) Over()                   { all.each((*oracle.Record).Over) }
func (all records) Mark(flag uint8)         { all.each(func(r *oracle.Record) { r.Mark(flag) }) }
func (all records) Settle(o oracle.Outcome) { all.each(func(r *oracle.Record) { r.Settle(o) }) }

// Inside is that of each record. The section of all locks stands only if that of each does.
func (all records) Inside(alive func() bool, left func() time.Duration) (stands bool) {
	all.each(func(r *oracle.Record) { stands = r.Inside(alive, left) })
	return stands
}

// together takes two or three locks at once, named in any order. What it does inside is a section
// of each of them.
func (g *goroutine) together() {
	var chosen []int
	for _, i := range g.rnd.Perm(len(g.mine)) {
		if k := g.Locks[g.mine[i]].Kind; k != Counter && k != Quorum {
			chosen = append(chosen, g.mine[i])
		}
	}
	if len(chosen) < 2 {
		return
	}
	chosen = chosen[:min(2+g.rnd.IntN(2), len(chosen))]
	var parts []multilock.Part
	var rec records
	bounds, flags := g.bounds(false)
	flags |= oracle.Joint
	for _, i := range chosen {
		a, side := g.amount(&g.Locks[i])
		parts = append(parts, part(g.locker(g.session, &g.Locks[i]), a))
		rec = append(rec, g.log.Begin(oracle.Section, 0, i, 0, int64(a.n), flags|side))
	}
	ctx, done := g.running, func() {}
	if g.chance(12) {
		ctx, done = context.WithTimeout(ctx, g.upTo(10*time.Millisecond))
	}
	defer done()
	m := multilock.New(parts...)
	call := m.Lock
	if bounds.try {
		call = m.TryLock
	}
	ctx, h, err := call(ctx, bounds.opts...)
	rec.Returned()
	if err != nil {
		rec.Settle(g.refusal(chosen[0], rec, err))
		return
	}
	for i, p := range parts {
		rec[i].Token(h.Token(p))
	}
	x := &section{g: g, parent: g.running, lock: chosen[0], rec: rec, ctx: ctx, holds: []held{{h.Unlock, h.Remaining, h.Extend, 0}}}
	rec.Settle(oracle.Held)
	x.inside()
	x.stay(g.stay(&g.Locks[chosen[0]]), flags&oracle.Fixed != 0 && g.chance(30))
	x.leave(flags)
}

// part is what multilock takes in place of a call of lock.
func part(l locker, a attempt) multilock.Part {
	switch l := l.(type) {
	case readWrite:
		if a.read {
			return multilock.Read(l.m)
		}
		return l.m
	case permits:
		return multilock.Permits(l.m, a.n)
	}
	return l.(mutex).m.(multilock.Part)
}
