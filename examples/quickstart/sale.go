// This file lets the services sell, and adds up what came of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"relock/examples/internal/demo"
)

// A sale is what came of selling the stock once.
type sale struct {
	stock     int
	customers int // who were served, with a unit or without
	sold      int // units that the goroutines handed out
	left      int // units left by the books
	badAudits int // audits, one after each unit sold, whose books did not add up

	took     time.Duration
	acquired int             // times the lock was acquired, nested ones included
	waits    []time.Duration // for each outermost acquisition, sorted
	commands int64           // that the sessions sent to Redis
}

// oversold returns how many units were sold that did not exist.
func (s sale) oversold() int { return max(0, s.sold-s.stock) }

// perSecond returns how often the lock was acquired.
func (s sale) perSecond() int { return int(float64(s.acquired) / max(s.took.Seconds(), 1e-9)) }

// commandsEach returns how many commands the sessions sent for each acquisition, its
// release included.
func (s sale) commandsEach() float64 { return float64(s.commands) / float64(max(s.acquired, 1)) }

// waited returns how long the given share of the acquisitions waited at most: 0.5 for
// the median, 1 for the longest wait.
func (s sale) waited(share float64) time.Duration {
	if len(s.waits) == 0 {
		return 0
	}
	return s.waits[int(share*float64(len(s.waits)-1))]
}

// check returns what must not have happened under the lock.
func (s sale) check() error {
	switch {
	case s.oversold() > 0:
		return fmt.Errorf("oversold by %d under the lock", s.oversold())
	case s.badAudits > 0 || s.left+s.sold != s.stock:
		return fmt.Errorf("the books do not add up under the lock: %d sold, %d left of %d, %d bad audits",
			s.sold, s.left, s.stock, s.badAudits)
	}
	return nil
}

// A tally is what one goroutine counts.
type tally struct {
	sold, acquired, badAudits int
	waits                     []time.Duration
}

// entered notes an outermost acquisition.
func (t *tally) entered(wait time.Duration) {
	t.acquired++
	t.waits = append(t.waits, wait)
}

// sell opens the services and sells the stock under the lock, then again without.
func sell(ctx context.Context, redis *demo.Redis, j job, out *screen) (locked, open sale, err error) {
	wire := new(demo.Wire)
	var services []*service
	defer func() {
		for _, s := range services {
			err = errors.Join(err, s.close())
		}
	}()
	for range j.services {
		s, err := openService(ctx, redis, wire, j.stock)
		if err != nil {
			return locked, open, err
		}
		services = append(services, s)
	}
	defer func() { // also after Ctrl-C
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		for _, s := range services { // each behind what it has sent itself, and may have given up
			err = errors.Join(err, s.stock.remove(ctx))
		}
	}()

	sent := wire.Commands() // connecting does not count
	if locked, err = sellOnce(ctx, services, j, out, "with the lock"); err != nil {
		return locked, open, err
	}
	locked.commands = wire.Commands() - sent

	for _, s := range services {
		s.lock = unlocked{}
	}
	open, err = sellOnce(ctx, services, j, out, "without")
	return locked, open, err
}

// sellOnce fills the stock and lets all goroutines of all services serve customers
// until none is left, or the shop closes.
func sellOnce(ctx context.Context, services []*service, j job, out *screen, name string) (sale, error) {
	res := sale{stock: j.stock}
	if err := services[0].stock.fill(ctx); err != nil {
		return res, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var arrived, served atomic.Int64
	tallies := make([]tally, j.services*j.goroutines)
	start := time.Now()
	stopProgress := out.progress(name, &served, j.customers)
	var wg sync.WaitGroup
	for i := range tallies {
		s, t := services[i%len(services)], &tallies[i]
		wg.Go(func() {
			for time.Since(start) < j.open && int(arrived.Add(1)) <= j.customers {
				if err := s.serve(ctx, t); err != nil {
					fail(err) // the others stop too
					return
				}
				served.Add(1)
			}
		})
	}
	wg.Wait()
	res.took = time.Since(start)
	stopProgress()
	if ctx.Err() != nil {
		return res, context.Cause(ctx)
	}

	res.customers = int(served.Load())
	for _, t := range tallies {
		res.sold += t.sold
		res.acquired += t.acquired
		res.badAudits += t.badAudits
		res.waits = append(res.waits, t.waits...)
	}
	slices.Sort(res.waits)
	var err error
	res.left, err = services[0].stock.left(ctx)
	return res, err
}
