package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
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

// A wish is a context that wants a section to be renewed as long as it lives.
type wish struct {
	x   *section
	ctx context.Context
}

// liveSections returns which sections of c want it to be renewed. It runs code of the callers' contexts, so no mutex may
// be held; sections may come and go meanwhile.
func (c *claim) liveSections() (item renewalItem) {
	var few [1]wish
	all := few[:0]
	c.lock.mu.Lock()
	shared := c.kind.Shares && !c.noHandOver
	item.c = c
	for x := c.sections; x != nil; x = x.next {
		item.all++
		fixed := x.holds.Nested != nil && len(x.holds.Nested.Fixed) > 0
		item.fixed = item.fixed || fixed
		if fixed && shared {
			item.alive = append(item.alive, x)
			continue
		}
		all = append(all, wish{x, &x.ctx})
		if n := x.holds.Nested; n != nil {
			for _, c := range n.Callers {
				all = append(all, wish{x, c.Ctx})
			}
		}
	}
	if c.account != nil {
		item.changes = c.account.Changes
	}
	c.lock.unlock()
	if len(all) == 1 { // as mostly
		if all[0].ctx.Err() == nil {
			item.alive = append(item.alive, all[0].x)
		}
		return item
	}
	return c.askAll(item, all)
}

// askAll asks several contexts, all at once: one that blocks must not keep the lock from the callers of the others, who
// share it. It has contextPatience once some section lives, so that a pause of the whole process counts against none.
func (c *claim) askAll(item renewalItem, all []wish) renewalItem {
	lives := make(chan *section, len(all)) // nil: the context has ended
	for _, w := range all {
		c.lock.s.life.Background.Go(func() {
			if w.ctx.Err() != nil {
				w.x = nil
			}
			lives <- w.x
		})
	}
	var late <-chan time.Time
	for over, n := false, 0; n < len(all) && (!over || len(lives) > 0); { // what has answered counts, also at the end
		select {
		case x := <-lives:
			n++
			if x == nil || slices.Contains(item.alive, x) {
				break
			}
			item.alive = append(item.alive, x)
			if late == nil {
				late = time.After(contextPatience)
			}
		case <-late:
			over = true
		}
	}
	return item
}
