package relocktest_test

import (
	"context"
	"errors"
	"fmt"

	"relock/election"
	"relock/relocktest"
	"relock/rlock"
)

// Reports is application code: it depends on the interface, so that its tests need no Redis.
type Reports struct{ lock relocktest.Doer }

// Run writes the report unless another process is at it.
func (r Reports) Run(ctx context.Context) (string, error) {
	written := "no"
	err := r.lock.Do(ctx, func(context.Context) error { written = "yes"; return nil }, rlock.Wait(0))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return "another process writes it", nil
	}
	return written, err
}

// A test says who leads.
func ExampleFakeElection() {
	var e relocktest.FakeElection
	ctx, stop := context.WithCancel(context.Background())
	err := e.Run(ctx, "10.0.0.1:8080", election.Callbacks{
		OnStartedLeading: func(leading context.Context) {
			fmt.Println("leading:", e.IsLeader())
			e.Elect(election.Leader{Value: "10.0.0.2:8080"})
			<-leading.Done()
			fmt.Println("leading:", e.IsLeader())
		},
	})
	fmt.Println(errors.Is(err, rlock.ErrLost))
	stop()
	// Output:
	// leading: true
	// leading: false
	// true
}

func ExampleFake() {
	var lock relocktest.Fake
	reports := Reports{lock: &lock}

	fmt.Println(reports.Run(context.Background()))
	lock.Refuse(rlock.ErrNotAcquired)
	fmt.Println(reports.Run(context.Background()))
	// Output:
	// yes <nil>
	// another process writes it <nil>
}
