package relocktest

import (
	"context"
	"slices"
	"sync"

	"relock/election"
)

// A fakeFollower is told who leads, for one OnNewLeader.
type fakeFollower struct {
	mu    sync.Mutex
	queue []election.Leader
	more  chan struct{} // of size 1
}

func (o *fakeFollower) tell(l election.Leader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, l)
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// take returns what has not been taken yet.
func (o *fakeFollower) take() []election.Leader {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue := o.queue
	o.queue = nil
	return queue
}

// follow calls fn for each leader, the one that there is included, until ctx ends. forget ends the telling.
func (f *FakeElection) follow(ctx context.Context, fn func(election.Leader), following *sync.WaitGroup) (forget func()) {
	o := &fakeFollower{more: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers = append(f.followers, o)
	if f.now != (election.Leader{}) {
		o.tell(f.now)
	}
	following.Go(func() {
		for {
			select {
			case <-o.more:
			case <-ctx.Done():
				return
			}
			for _, l := range o.take() {
				if ctx.Err() == nil {
					fn(l)
				}
			}
		}
	})
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.followers = slices.DeleteFunc(f.followers, func(other *fakeFollower) bool { return other == o })
	}
}
