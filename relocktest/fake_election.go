package relocktest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"relock/election"
	"relock/internal/api"
	"relock/rlock"
)

// Candidate is what code needs of an election that stands for it and asks whether it leads.
// [election.Election] implements it, and so does [FakeElection]: application code that depends on
// Candidate can be tested without Redis.
type Candidate interface {
	Run(ctx context.Context, value string, c election.Callbacks) error
	IsLeader() bool
}

// FakeElection is an election inside the process. Its candidates lead one after the other, in the order
// of arrival, unless the test says that another process leads ([FakeElection.Elect]); the test takes the
// leadership away ([FakeElection.Lose]) or has Run fail ([FakeElection.Refuse]). The zero FakeElection has no
// leader and is ready to use. Its methods are safe for concurrent use. Do not copy a FakeElection.
type FakeElection struct {
	mu        sync.Mutex
	now       election.Leader
	mine      *fakeCandidate // that leads; nil: nobody, or another process
	waiting   []*fakeCandidate
	followers []*fakeFollower
	changed   chan struct{} // closed when a candidate comes
	terms     int64
	refusal   error
}

// A fakeCandidate is a Run.
type fakeCandidate struct {
	ctx     context.Context
	value   string
	granted chan struct{} // closed when it leads
	leading context.Context
	end     context.CancelCauseFunc
	first   *fakeCandidate   // with whose leadership it leads: itself, unless its context is one of that
	runs    []*fakeCandidate // that lead with this one's leadership, which ends with the last of them
}

// Run is [election.Election.Run] with the same callbacks in the same order; OnNewLeader is called for
// each leader, however slow it is. A panic in OnStartedLeading ends the process. Errors: [rlock.ErrLost]
// after Lose, or when another process was elected; that of Refuse; [rlock.ErrArgument] for a nil ctx, or one
// that names an owner. On the context of its own leadership it leads too, as [election.Election.Campaign] re-enters.
func (f *FakeElection) Run(ctx context.Context, value string, c election.Callbacks) error {
	var following sync.WaitGroup
	defer following.Wait() // behind OnStoppedLeading
	if c.OnStoppedLeading != nil {
		defer c.OnStoppedLeading()
	}
	if err := standable(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if ctx.Err() != nil {
		return nil
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if c.OnNewLeader != nil {
		defer f.follow(watching, c.OnNewLeader, &following)()
	}
	x, err := f.stand(ctx, value)
	if x == nil {
		return err
	}
	select {
	case <-x.granted:
	case <-ctx.Done():
		if f.leave(x) {
			return nil
		}
	}
	returned := make(chan struct{})
	go func() {
		defer close(returned) // deferred: it may end the goroutine, as t.FailNow does
		if c.OnStartedLeading != nil {
			c.OnStartedLeading(x.leading)
		}
	}()
	<-x.leading.Done()
	<-returned
	return f.resign(x)
}

// standable returns why a context is refused, as an Election refuses it.
func standable(ctx context.Context) error {
	if ctx == nil {
		return api.ErrNilContext
	}
	if id, named := rlock.OwnerFrom(ctx); named {
		return fmt.Errorf("%w: ctx names the owner %q; a candidate is private: use rlock.WithoutOwner", rlock.ErrArgument, id)
	}
	return nil
}

// stand enters a candidate, who may lead at once.
func (f *FakeElection) stand(ctx context.Context, value string) (*fakeCandidate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal != nil {
		return nil, f.refusal
	}
	x := &fakeCandidate{ctx: ctx, value: value, granted: make(chan struct{})}
	if first, _ := insideOf(ctx, f).(*fakeCandidate); first != nil && first == f.mine { // as Campaign re-enters
		x.lead(f, first)
		f.set(first, election.Leader{Owner: f.now.Owner, Term: f.now.Term, Value: value})
		return x, nil
	}
	f.waiting = append(f.waiting, x)
	f.next()
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
	return x, nil
}

// leave takes a candidate out that waits, and reports whether it did.
func (f *FakeElection) leave(x *fakeCandidate) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.Index(f.waiting, x)
	if i >= 0 {
		f.waiting = slices.Delete(f.waiting, i, i+1)
	}
	return i >= 0
}

// lead has a candidate lead with a leadership. The mutex of f must be held.
func (x *fakeCandidate) lead(f *FakeElection, first *fakeCandidate) {
	x.first = first
	x.leading, x.end = context.WithCancelCause(enter(x.ctx, f, first))
	first.runs = append(first.runs, x)
	close(x.granted)
}

// resign ends what a Run has of a leadership, unless it was lost.
func (f *FakeElection) resign(x *fakeCandidate) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mine != x.first {
		return fmt.Errorf("run: %w", rlock.ErrLost)
	}
	x.first.runs = slices.DeleteFunc(x.first.runs, func(other *fakeCandidate) bool { return other == x })
	if len(x.first.runs) == 0 {
		f.set(nil, election.Leader{})
	}
	return nil
}

// next has the first candidate lead, if nobody does. f.mu must be held.
func (f *FakeElection) next() {
	if f.now != (election.Leader{}) || len(f.waiting) == 0 {
		return
	}
	x := f.waiting[0]
	f.waiting = f.waiting[1:]
	f.terms++
	x.lead(f, x)
	f.set(x, election.Leader{Owner: fmt.Sprintf("fake:%d", f.terms), Term: f.terms, Value: x.value})
}

// set says who leads, and tells the followers; if nobody does the next candidate follows. f.mu must be held.
func (f *FakeElection) set(x *fakeCandidate, l election.Leader) {
	if last := f.mine; last != nil && last != x {
		for _, r := range last.runs { // there is none when the last one has resigned
			r.end(rlock.ErrLost)
		}
	}
	f.mine = x
	if l == f.now {
		return
	}
	f.now = l
	if l == (election.Leader{}) {
		if f.next(); f.now != l { // as an observer sees it, who sees no gap
			return
		}
	}
	for _, o := range f.followers {
		o.tell(l)
	}
}

// Elect has another process lead: the leadership of this one is lost, as by [FakeElection.Lose], its
// candidates wait, and OnNewLeader is told of l. With the zero Leader nobody leads any more, and the first
// candidate does. A Term of 0 stands for the next one.
func (f *FakeElection) Elect(l election.Leader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l != (election.Leader{}) && l.Term == 0 {
		f.terms++
		l.Term = f.terms
	}
	f.terms = max(f.terms, l.Term)
	f.set(nil, l)
}

// Lose takes the leadership away from this process's leader: its context ends with the cause
// [rlock.ErrLost], and the next candidate leads. It reports whether there was one.
func (f *FakeElection) Lose() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mine == nil {
		return false
	}
	f.set(nil, election.Leader{})
	return true
}

// Refuse makes every later Run return err at once, until Refuse(nil).
func (f *FakeElection) Refuse(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusal = err
}

// IsLeader reports whether a candidate of this process leads.
func (f *FakeElection) IsLeader() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mine != nil && slices.ContainsFunc(f.mine.runs, func(x *fakeCandidate) bool { return x.leading.Err() == nil })
}

// AwaitCandidates blocks until at least n candidates of this process wait, the leader not counted, or ctx
// ends, whose error it then returns.
func (f *FakeElection) AwaitCandidates(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		enough := len(f.waiting) >= n
		if f.changed == nil {
			f.changed = make(chan struct{})
		}
		changed := f.changed
		f.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
