package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"relock/internal/holds"
)

// contextPatience is how long a caller's context may take to say whether it has ended before other claims are renewed
// without waiting for it.
const contextPatience = 50 * time.Millisecond

// renew has claims renewed whose callers' contexts want it, all at once. It asks the contexts one after the other. Where one
// blocks, the claims before it are renewed, it is renewed when it answers, and each of those behind it by itself.
func (s *Session) renew(claims []*claim) {
	items, done := make([]renewalItem, len(claims)), make(chan struct{})
	var n atomic.Int64 // how many have answered; -1: they are waited for no more
	s.life.Background.Go(func() {
		defer close(done)
		for i, c := range claims {
			items[i] = c.liveSections()
			if !n.CompareAndSwap(int64(i), int64(i)+1) {
				s.renewAsked(items[i : i+1])
				return
			}
		}
	})
	ticks := time.NewTicker(contextPatience)
	defer ticks.Stop()
	for last := int64(-1); ; {
		select {
		case <-done:
			s.renewAsked(items)
			return
		case <-ticks.C:
		}
		now := n.Load()
		if now == last && now < int64(len(claims)) && n.CompareAndSwap(now, -1) {
			for _, c := range claims[now+1:] {
				s.life.Background.Go(func() { s.renewAsked([]renewalItem{c.liveSections()}) })
			}
			s.renewAsked(items[:now])
			return
		}
		last = now
	}
}

// liveSections returns which sections of c want it to be renewed. It runs code of the callers' contexts, so no mutex may
// be held; sections may come and go meanwhile.
func (c *claim) liveSections() (item renewalItem) {
	type wish struct {
		x       *section
		fixed   bool // it has a hold with a fixed lease
		callers []holds.Caller
	}
	var few [1]wish
	all := few[:0]
	c.lock.mu.Lock()
	for x := c.sections; x != nil; x = x.next {
		w := wish{x: x}
		if n := x.holds.Nested; n != nil {
			w.fixed, w.callers = len(n.Fixed) > 0, slices.Clone(n.Callers)
		}
		all = append(all, w)
	}
	item = renewalItem{c: c, all: len(all)}
	if c.account != nil {
		item.changes = c.account.Changes
	}
	shared := c.kind.Shares && !c.noHandOver
	c.lock.unlock()
	for _, w := range all {
		lives := func(c holds.Caller) bool { return c.Ctx.Err() == nil }
		if w.fixed && shared || w.x.ctx.Err() == nil || slices.ContainsFunc(w.callers, lives) {
			item.alive = append(item.alive, w.x)
		}
		item.fixed = item.fixed || w.fixed
	}
	return item
}
