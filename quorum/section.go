package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"relock/internal/engine"
	"relock/internal/report"
	"relock/rlock"
)

// sectionKey is where a context keeps the section that it lies in, by the id of the lock.
type sectionKey struct{ lock string }

// A section is one round of questions, and what came of it: the votes for one caller, and the
// context that lives while a majority of them can be trusted.
type section struct {
	m      *Mutex
	ctx    context.Context
	cancel context.CancelCauseFunc
	asking context.Context // ends what is still asked for, and the renewals
	stop   context.CancelFunc

	mu      sync.Mutex
	votes   []vote // that were given
	trusted int    // how many of them can be trusted
	formed  bool   // a majority could be trusted at a time
	over    bool   // less than that was left then; no more are taken
	closed  bool   // they are being released; no more are taken
	lost    error  // why less than a majority was left before that: ErrLost or ErrClosed
}

// A vote is the hold of one Redis.
type vote struct {
	*node
	*engine.Hold
	forget func() bool // that its end is waited for
}

// openIn reports whether a session that shuts down waits for the section, and lets it take more locks.
func (x *section) openIn(s *engine.Session) bool {
	return x.ctx.Err() == nil && slices.ContainsFunc(x.m.nodes, func(n *node) bool { return n.Session() == s })
}

// take adds a vote, unless the section is over. Its end is the end of the section if it leaves
// less than a majority.
func (x *section) take(n *node, ctx context.Context, h *engine.Hold) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || x.over {
		return false
	}
	x.trusted++
	x.votes = append(x.votes, vote{n, h, context.AfterFunc(ctx, func() { x.drop(context.Cause(ctx)) })})
	return true
}

// drop notes that a vote cannot be trusted any more.
func (x *section) drop(cause error) {
	x.mu.Lock()
	x.trusted--
	over := x.formed && !x.closed && x.trusted < x.m.need
	x.over = x.over || over
	if over && x.lost == nil && (errors.Is(cause, rlock.ErrLost) || errors.Is(cause, rlock.ErrClosed)) {
		x.lost = cause
	}
	x.mu.Unlock()
	if over {
		x.cancel(cause) // without the mutex: it runs code of the caller's contexts
	}
}

// form makes the votes a section if they are a majority.
func (x *section) form() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.formed = x.trusted >= x.m.need
	return x.formed
}

// remaining returns for how long a majority of the votes can be trusted.
func (x *section) remaining() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return 0
	}
	left := make([]time.Duration, len(x.votes))
	for i, v := range x.votes {
		left[i] = v.Remaining()
	}
	slices.Sort(left)
	return left[len(left)-x.m.need]
}

// release gives all votes back, at the same time. It blocks until the Redises have answered, but
// not longer than for one of them if those that have not answered are no majority's loss: the
// votes of the others leave a majority for the next caller. Nor if there was no majority: then
// its caller waits for an error.
//
// Errors: ErrLost or ErrClosed if the votes were less than a majority before; the client's if so
// many are not confirmed that others may have to wait.
func (x *section) release() error {
	x.mu.Lock()
	votes, lost := x.votes, x.lost
	x.closed = true
	x.mu.Unlock()
	x.cancel(rlock.ErrReleased)
	answers := make(chan error, len(votes))
	for _, v := range votes {
		v.forget()
		err := v.Calls().Go(context.Background(), func(context.Context) {
			err := report.ErrQuit // if a hook ends the goroutine, as t.FailNow does
			defer func() { answers <- err }()
			err = v.Unlock(false)
		})
		if err != nil { // the session is closed: so is the vote
			answers <- v.Unlock(false)
		}
	}
	x.stop()
	timer := time.NewTimer(x.m.bound)
	defer timer.Stop()
	var gone, errs []error
	silent, late := len(votes), false
	for silent > 0 && !(late && (!x.formed || silent+len(errs) <= len(x.m.nodes)-x.m.need)) {
		select {
		case <-timer.C:
			late = true
			continue
		case err := <-answers:
			silent--
			if errors.Is(err, rlock.ErrLost) || errors.Is(err, rlock.ErrClosed) {
				gone = append(gone, err)
			} else if err != nil {
				errs = append(errs, err)
			}
		}
	}
	switch {
	case x.formed && len(votes)-len(gone) < x.m.need:
		return fmt.Errorf("%d of %d votes were left, and %d are a majority: %w",
			len(votes)-len(gone), len(x.m.nodes), x.m.need, errors.Join(gone...))
	case lost != nil: // and not all that are gone have said so within the bound
		return fmt.Errorf("less than %d of %d votes were left: %w", x.m.need, len(x.m.nodes), lost)
	case len(errs) > len(x.m.nodes)-x.m.need:
		return errors.Join(errs...)
	}
	return nil
}
