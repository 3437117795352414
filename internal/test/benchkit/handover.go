package benchkit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// HandOver returns how long it takes from the moment when one holder begins to release until
// the waiter is in, rounds times, in turns between two ways to the same lock. settle is what
// passes before a release, so that the waiter surely waits and nothing is under way any
// more. It blocks until then, or until ctx ends;
// after an error it returns those that were.
func HandOver(ctx context.Context, a, b Cycle, rounds int, settle time.Duration) ([]time.Duration, error) {
	took := make([]time.Duration, 0, rounds)
	cycles := [2]Cycle{a, b}
	holder := visit(ctx, a)
	if _, err := holder.in(); err != nil {
		return nil, err
	}
	for i := 1; i <= rounds; i++ {
		waiter := visit(ctx, cycles[i%2])
		time.Sleep(settle)
		released := time.Now()
		close(holder.leave)
		at, err := waiter.in()
		if err == nil && at.Before(released) {
			err = errors.New("benchkit: the waiter came in while the holder was inside")
		}
		if err = errors.Join(err, <-holder.done); err != nil {
			return took, fmt.Errorf("hand-over %d: %w", i, err)
		}
		took = append(took, at.Sub(released))
		holder = waiter
	}
	close(holder.leave)
	return took, <-holder.done
}

// stay is one round that lasts until it is told to leave.
type stay struct {
	entered chan time.Time
	leave   chan struct{}
	done    chan error
}

func visit(ctx context.Context, c Cycle) *stay {
	s := &stay{entered: make(chan time.Time, 1), leave: make(chan struct{}), done: make(chan error, 1)}
	go func() {
		s.done <- c(ctx, true, func() {
			s.entered <- time.Now()
			select {
			case <-s.leave:
			case <-ctx.Done():
			}
		})
	}()
	return s
}

// in waits until it has entered.
func (s *stay) in() (time.Time, error) {
	select {
	case at := <-s.entered:
		return at, nil
	case err := <-s.done:
		return time.Time{}, fmt.Errorf("benchkit: not let in: %w", err)
	}
}
