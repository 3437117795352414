// This file is about the read-write lock.
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"relock/examples/internal/demo"
	"relock/rlock"
	"relock/rwlock"
)

const (
	readers   = 6
	readFor   = 30 * time.Millisecond
	rest      = 10 * time.Millisecond // of a reader, between two reads
	writeFor  = 40 * time.Millisecond
	readUntil = 600 * time.Millisecond // and until the writer was through
	inTurn    = 10 * time.Second       // for the writer: one that is kept out gets in by chance, later
)

// reading is what readers that keep coming and one writer did.
type reading struct {
	lanes    []lane // of the readers, then of the writer
	together int    // readers inside at once, at the most
	mixed    bool   // the writer was inside together with another owner
	came     time.Duration
	entered  time.Duration
	reads    int // begun after the writer had entered
}

func (r reading) check() error {
	switch {
	case r.mixed:
		return errors.New("the writer was not alone")
	case r.together < 2:
		return errors.New("no two readers were inside together")
	case r.reads == 0 || r.entered-r.came > inTurn:
		return fmt.Errorf("the writer came at %v and entered at %v, after the readers", r.came, r.entered)
	}
	return nil
}

// showReadWrite has readers read again and again, and one writer come in between. The readers go on
// until the writer was through, so that one that starves would not get in before ctx ends.
func showReadWrite(ctx context.Context, redis *demo.Redis) (r reading, err error) {
	sessions, closeAll, err := openServices(ctx, redis, services, rlock.Config{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()

	start := time.Now()
	var inside, most, writing atomic.Int32
	var mixed, through atomic.Bool
	var mu sync.Mutex
	var errs error
	fail := func(e error) { mu.Lock(); errs = errors.Join(errs, e); mu.Unlock() }
	lanes := make([]lane, readers+1)
	var wg sync.WaitGroup
	for i := range readers {
		l := &lanes[i]
		l.name = fmt.Sprint("reader ", i+1)
		prices := rwlock.New(sessions[i%services], "prices")
		wg.Go(func() {
			for last := false; !last && ctx.Err() == nil; {
				asked := time.Since(start)
				last = asked >= readUntil && through.Load()
				fail(prices.RDo(ctx, func(ctx context.Context) error {
					if writing.Load() != 0 {
						mixed.Store(true)
					}
					raise(&most, inside.Add(1))
					defer inside.Add(-1)
					defer l.stay(start, asked, 'r')()
					return pause(ctx, readFor)
				}))
				fail(pause(ctx, rest))
			}
		})
	}
	wg.Go(func() {
		fail(pause(ctx, readUntil/4))
		r.came = time.Since(start)
		l := &lanes[readers]
		l.name = "writer"
		fail(rwlock.New(sessions[0], "prices").Do(ctx, func(ctx context.Context) error {
			r.entered = time.Since(start)
			writing.Store(1)
			defer writing.Store(0)
			defer l.stay(start, r.came, 'W')()
			err := pause(ctx, writeFor)
			if inside.Load() != 0 {
				mixed.Store(true)
			}
			return err
		}))
		through.Store(true)
	})
	wg.Wait()
	r.lanes, r.together, r.mixed = lanes, int(most.Load()), mixed.Load()
	r.reads = begunAfter(lanes[:readers], r.entered)
	return r, errs
}

// begunAfter counts the stays that began after a time.
func begunAfter(lanes []lane, at time.Duration) (n int) {
	for _, l := range lanes {
		for _, s := range l.stays {
			if s.in > at {
				n++
			}
		}
	}
	return n
}

// raise sets most to n if that is more.
func raise(most *atomic.Int32, n int32) {
	for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
	}
}
