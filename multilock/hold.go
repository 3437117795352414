package multilock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"relock/internal/report"
	"relock/rlock"
)

// Hold is one successful Lock of a [Mutex]: a hold of each of its locks. It is not bound to the
// goroutine that got it. Safe for concurrent use. The methods of a nil or zero Hold return
// [rlock.ErrNotHeld] or zero values.
type Hold struct {
	locks []lock
	holds []*rlock.Hold // of the locks, by index
}

// Unlock releases all of the locks at the same time. It works although the context is done, and
// blocks for one round trip, at most the longest Config.ReleaseTimeout of the sessions.
//
// It returns the errors of all locks, joined: those of [rlock.Hold.Unlock], as ErrLost for each
// lock that was lost, and ErrNotHeld for a second call. After any error all holds have ended.
func (h *Hold) Unlock() error {
	return h.each("unlock", func(_ int, hold *rlock.Hold) error { return hold.Unlock() })
}

// Extend gives holds with a fixed lease ([rlock.Lease]) a new end: d from now, at least 1 ms
// (else [rlock.ErrArgument]). It extends all locks at the same time and blocks until all have
// answered, at most until ctx ends. It returns their errors, joined: those of
// [rlock.Hold.Extend]. After an error some of the locks may have the new end and others the
// old one; [Hold.Remaining] tells.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	return h.each("extend", func(_ int, hold *rlock.Hold) error { return hold.Extend(ctx, d) })
}

// Remaining returns for how long all of the locks can be trusted without another answer from
// Redis: the shortest time of them; 0 when one has ended.
func (h *Hold) Remaining() (left time.Duration) {
	if h == nil {
		return 0
	}
	for i, hold := range h.holds {
		if r := hold.Remaining(); i == 0 || r < left {
			left = r
		}
	}
	return left
}

// Token returns the fencing token of one of the locks, named as to [New]; 0 unless that is
// [rlock.Fenced] and one of those held here.
func (h *Hold) Token(p Part) int64 {
	want, err := newLock(p)
	if h == nil || err != nil {
		return 0
	}
	for i, l := range h.locks {
		if same(l, want) && l.Session() == want.Session() {
			return h.holds[i].Token()
		}
	}
	return 0
}

// each runs fn for all holds at the same time, so that one Redis that does not answer holds up
// no other. The two sides of a read-write lock are one section: they go one after the other, the
// inner one first.
func (h *Hold) each(op string, fn func(i int, hold *rlock.Hold) error) error {
	if h == nil || len(h.holds) == 0 {
		return fmt.Errorf("%s: %w", op, rlock.ErrNotHeld)
	}
	errs := make([]error, len(h.holds))
	var all sync.WaitGroup
	panicked := make(chan any, 1)
	for first, end := 0, 0; first < len(h.holds); first = end {
		for end = first + 1; end < len(h.holds) && h.locks[end].sideOf(h.locks[first]); end++ {
		}
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					select {
					case panicked <- p:
					default: // one is enough
					}
				}
			}()
			h.outward(errs, first, end-1, fn)
		})
	}
	all.Wait()
	select {
	case p := <-panicked: // the caller, who may recover, is to see the panic of a context
		panic(p)
	default:
		return errors.Join(errs...)
	}
}

// outward runs fn for the holds from last down to first. A hook of the caller's may end the goroutine, as t.FailNow does: that
// is the end of one call of fn, and the others follow.
func (h *Hold) outward(errs []error, first, last int, fn func(i int, hold *rlock.Hold) error) {
	if last < first {
		return
	}
	defer h.outward(errs, first, last-1, fn)
	errs[last] = report.ErrQuit
	errs[last] = fn(last, h.holds[last])
}
