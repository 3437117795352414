package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"relock/internal/engine"
	"relock/internal/report"
	"relock/internal/script"
	"relock/rlock"
)

// A try is one call of Lock.
type try struct {
	m        *Mutex
	opts     []rlock.LockOption // of each vote
	once     bool               // without waiting
	retry    rlock.Backoff      // of Retry; nil: it listens
	deadline time.Time          // of Wait; zero: none
}

// acquire asks until there is a majority. A caller that waits has its turn among those of this
// handle, which would only take votes from each other. One with Retry does not wait for others.
func (t *try) acquire(ctx context.Context) (*section, error) {
	m := t.m
	if t.once {
		return t.round(ctx)
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	if !t.deadline.IsZero() {
		waiting, cancel = context.WithDeadline(waiting, t.deadline)
		defer cancel()
	}
	sleeps := t.retry
	if sleeps == nil {
		sleeps = m.pause
		select {
		case m.turn <- struct{}{}:
			defer func() { <-m.turn }()
		case <-waiting.Done():
			return nil, over(ctx, errTurn)
		}
	}
	began := time.Now()
	x, err := t.round(ctx)
	window := max(time.Since(began), time.Millisecond)
	var news <-chan int
	var ends <-chan struct{}
	for n := 1; err != nil && ctx.Err() == nil && !permanent(err); n++ {
		if n == 1 { // a caller that need not wait does without
			var stop func()
			ends, stop = m.ends()
			defer stop()
		}
		if news == nil && t.retry == nil {
			news = m.listen(waiting)
		}
		if d := sleeps(n); d < 0 || !m.sleep(waiting, news, ends, d, window) {
			return nil, over(ctx, err)
		}
		window = min(2*window, m.bound)
		x, err = t.round(ctx)
	}
	return x, err
}

// ends returns a channel that hears of sessions which close or shut down, also of those that have begun
// to, until stop.
func (m *Mutex) ends() (ends <-chan struct{}, stop func()) {
	heard := make(chan struct{}, 1)
	stops := make([]func() bool, 0, len(m.nodes))
	for _, n := range m.nodes {
		stops = append(stops, n.Calls().OnEnd(func() {
			select {
			case heard <- struct{}{}:
			default: // the next round finds both
			}
		}))
	}
	return heard, func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// errTurn is why a caller whose wait is over has asked nothing.
var errTurn = errors.New("other callers of this handle wait in front")

// over is the error of a wait that is over; err is why the last round failed.
func over(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	if errors.Is(err, rlock.ErrNotAcquired) {
		return err
	}
	return fmt.Errorf("%w: %w", rlock.ErrNotAcquired, err)
}

// round asks all Redises at the same time, and ends with the answer that decides: a majority of
// votes, of refusals, or of silence. Without a majority of votes what was given is given back.
func (t *try) round(ctx context.Context) (*section, error) {
	m := t.m
	x := &section{m: m}
	x.ctx, x.cancel = context.WithCancelCause(engine.InSection(context.WithValue(ctx, sectionKey{m.id}, x), x.openIn))
	x.asking, x.stop = context.WithCancel(rlock.WithoutOwner(ctx))
	answers := make(chan error, len(m.nodes))
	for i, n := range m.nodes {
		err := n.Calls().Go(context.Background(), func(context.Context) {
			answered := false
			defer func() {
				if !answered { // a hook has ended the goroutine, as t.FailNow does
					answers <- named(i, report.ErrQuit)
				}
			}()
			vote, hold, err := n.ask(x.asking, m.bound, t.opts)
			taken := err == nil && x.take(n, vote, hold)
			answered = true
			answers <- named(i, err) // before the release, for which the Redis may be silent
			if hold != nil && !taken {
				_ = hold.Unlock(false) // it came too late
			}
		})
		if err != nil {
			answers <- named(i, err)
		}
	}
	f := failure{m: m}
	for range m.nodes {
		if f.add(<-answers) {
			break
		}
		if x.form() {
			return x, nil
		}
	}
	_ = x.release()
	return nil, f.err()
}

// named says which Redis an error is of.
func named(i int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("node %d: %w", i, err)
}

// A failure is why a round has no majority.
type failure struct {
	m       *Mutex
	errs    []error // of the nodes, in the order of their answers
	refused int     // by nodes that have granted the lock to others, or give no votes yet
	closed  int     // by closed sessions
	denied  int     // by nodes that refuse for another reason, which waiting does not cure
}

// add takes in the answer of a node, and reports whether it is plain now what has failed.
func (f *failure) add(err error) (plain bool) {
	switch {
	case err == nil:
		return false
	case errors.Is(err, rlock.ErrNotAcquired):
		f.refused++
	case errors.Is(err, rlock.ErrClosed):
		f.closed++
	case script.Classify(err) == script.Refused:
		f.denied++
	}
	f.errs = append(f.errs, err)
	spare := len(f.m.nodes) - f.m.need
	return f.refused > spare || len(f.errs)-f.refused > spare
}

// err matches ErrNotAcquired if a majority of the nodes can be reached, ErrClosed if closed
// sessions leave none, and else what the nodes match that did not answer.
func (f *failure) err() error {
	head := fmt.Errorf("%d of %d votes are a majority", f.m.need, len(f.m.nodes))
	spare := len(f.m.nodes) - f.m.need
	unreachable := len(f.errs)-f.refused > spare
	switch {
	case f.closed > spare:
		head = fmt.Errorf("%w: %w", rlock.ErrClosed, head)
	case !unreachable:
		head = fmt.Errorf("%w: %w", rlock.ErrNotAcquired, head)
	}
	for _, err := range f.errs {
		if unreachable && !errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, rlock.ErrClosed) {
			head = fmt.Errorf("%w; %w", head, err)
		} else {
			head = fmt.Errorf("%w; %v", head, err)
		}
	}
	if f.closed+f.denied > spare {
		return forGood{head}
	}
	return head
}

// forGood is the error of a round after which there never is a majority.
type forGood struct{ error }

func (e forGood) Unwrap() error { return e.error }

// permanent reports whether no later round can succeed where one has failed with err.
func permanent(err error) bool { return errors.As(err, new(forGood)) }

// listen subscribes to the releases on all nodes, until ctx ends. The channel gets the number of
// a node for each release there, and when the subscription is confirmed: what was published
// before that is unknown.
func (m *Mutex) listen(ctx context.Context) <-chan int {
	news := make(chan int)
	for i, n := range m.nodes {
		_ = n.Calls().Attend(ctx, func(ctx context.Context) {
			l, err := n.Session().Listen(ctx, n.Channel())
			if err != nil {
				return // the caller looks by the clock
			}
			defer l.Close()
			for {
				select {
				case news <- i:
				case <-ctx.Done():
					return
				}
				select {
				case <-l.C():
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return news
}

// sleep waits before the next round: until releases on a majority of the nodes were heard of, or
// d is over. Fewer releases are those of callers that take back votes because another owner has
// a majority; if they woke the others there would be no end of it. Callers that are woken together
// come at different times within the window, which grows from round to round. The end of a session
// ends the sleep at once. sleep reports false when ctx ends first.
func (m *Mutex) sleep(ctx context.Context, news <-chan int, ends <-chan struct{}, d, window time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	heard := map[int]bool{}
	for {
		select {
		case i := <-news:
			if heard[i] = true; len(heard) == m.need {
				timer.Reset(rand.N(window))
			}
		case <-timer.C:
			return true
		case <-ends:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
