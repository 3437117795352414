package multilock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/internal/api"
	"relock/internal/clock"
	"relock/internal/engine"
	"relock/internal/script"
	"relock/rlock"
)

// order returns the locks in the order in which they are taken. What the order depends on is
// asked for once. While a Redis does not answer that, the caller waits as it does for a lock: the
// end of a session turns it away, unless it lies in an open section there.
func (m *Mutex) order(ctx context.Context, o api.Options, deadline time.Time) ([]lock, error) {
	if known := m.ordered.Load(); known != nil {
		return *known, nil
	}
	began := time.Now()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer onEnd(m.locks, func() {
		if turnedAway(ctx, m.locks) {
			cancel()
		}
	})()
	var last error // of the last question that was asked: to one behind the end of ctx there is no answer
	for n := 0; ; n++ {
		most := api.Longest
		switch {
		case o.Bounded && o.Wait == 0:
			most = time.Second // as a TryLock has
		case o.Bounded:
			most = max(time.Millisecond, time.Until(deadline))
		}
		ordered, err := locate(asking, m.locks, most)
		if asked := !script.IsContext(err) || errors.Is(err, rlock.ErrUnavailable); asked || last == nil {
			last = err
		}
		switch {
		case err == nil:
			m.ordered.Store(&ordered)
			return ordered, nil
		case turnedAway(ctx, m.locks):
			return nil, rlock.ErrClosed
		case ctx.Err() != nil:
			return nil, over(ctx, unordered(began, last))
		case !errors.Is(err, rlock.ErrUnavailable) || script.Denied(err) || o.Retry != nil || o.Bounded && o.Wait == 0:
			return nil, err
		case o.Bounded && time.Until(deadline) <= 0:
			return nil, over(ctx, unordered(began, err))
		}
		_ = clock.Pause(asking, n)
	}
}

// unordered is the error of a caller that has waited for the order of its locks; err is that of the
// last question, whose bound was a part of the wait only.
func unordered(began time.Time, err error) error {
	return fmt.Errorf("the order of the locks was not known for %v: a Redis did not say which one it is (last attempt: %w)",
		time.Since(began).Round(time.Millisecond), err)
}

// turnedAway reports whether a session of the locks ends for a caller that waits with ctx: it closes,
// or it shuts down and ctx lies in no open section of it.
func turnedAway(ctx context.Context, locks []lock) bool {
	for _, l := range locks {
		if (*engine.Session)(l.Session()).TurnsAway(ctx) {
			return true
		}
	}
	return false
}

// onEnd runs fn when a session of the locks begins to shut down or to close, for each of them, until
// stop.
func onEnd(locks []lock, fn func()) (stop func()) {
	var stops []func() bool
	for _, l := range locks {
		session := (*engine.Session)(l.Session())
		names := session.NamesOf(l.key)
		handle := engine.NewHandle(session, &names, nil, nil)
		stops = append(stops, handle.Calls().OnEnd(fn))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}
