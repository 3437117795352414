package election_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"relock/election"
	"relock/relocktest"
	"relock/rlock"
)

// A process that stands for election works as the leader until its context ends.
func Example() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	scheduler := election.New(session, "scheduler")

	leading, leadership, err := scheduler.Campaign(ctx, "10.0.0.1:8080")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("term", leadership.Term())
	leader, err := scheduler.Leader(leading)
	fmt.Println(leader.Value, err)
	fmt.Println(leadership.Resign())
	fmt.Println(context.Cause(leading))
	_, err = scheduler.Leader(ctx)
	fmt.Println(errors.Is(err, election.ErrNoLeader))
	// Output:
	// term 1
	// 10.0.0.1:8080 <nil>
	// <nil>
	// rlock: lock released
	// true
}

// Run calls back, as client-go's leader election does.
func ExampleElection_Run() {
	session, _, done := relocktest.Open()
	defer done()
	ctx, stop := context.WithCancel(context.Background())
	scheduler := election.New(session, "scheduler")

	err := scheduler.Run(ctx, "10.0.0.1:8080", election.Callbacks{
		OnStartedLeading: func(leading context.Context) {
			fmt.Println("leading:", scheduler.IsLeader())
			stop() // as a signal may do
			<-leading.Done()
			fmt.Println("cleaned up")
		},
		OnStoppedLeading: func() { fmt.Println("leading:", scheduler.IsLeader()) },
	})
	fmt.Println(err)
	// Output:
	// leading: true
	// cleaned up
	// leading: false
	// <nil>
}

// A process serves a request itself if it leads.
func ExampleElection_IsLeader() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	e := election.New(session, "scheduler")
	fmt.Println(e.IsLeader())
	_, leadership, _ := e.Campaign(ctx, "10.0.0.1:8080")
	fmt.Println(e.IsLeader())
	_ = leadership.Resign()
	fmt.Println(e.IsLeader())
	// Output:
	// false
	// true
	// false
}

// Others follow the leader.
func ExampleElection_Observe() {
	session, _, done := relocktest.Open()
	defer done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	scheduler := election.New(session, "scheduler")
	leaders, err := scheduler.Observe(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, address := range []string{"10.0.0.1:8080", "10.0.0.2:8080"} {
		_, leadership, _ := scheduler.Campaign(ctx, address)
		l := <-leaders
		fmt.Println("term", l.Term, "is led by", l.Value)
		_ = leadership.Resign()
		if l = <-leaders; l == (election.Leader{}) {
			fmt.Println("nobody leads")
		}
	}
	cancel()
	_, more := <-leaders
	fmt.Println("more:", more)
	// Output:
	// term 1 is led by 10.0.0.1:8080
	// nobody leads
	// term 2 is led by 10.0.0.2:8080
	// nobody leads
	// more: false
}

// A leader changes what it publishes, a load or a version, as long as it leads.
func ExampleLeadership_Publish() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	e := election.New(session, "primary")
	leading, leadership, _ := e.Campaign(ctx, "starting")
	fmt.Println(leadership.Publish(leading, "ready"))
	now, _ := e.Leader(ctx)
	fmt.Println(now.Value)
	_ = leadership.Resign()
	fmt.Println(errors.Is(leadership.Publish(ctx, "too late"), rlock.ErrNotHeld))
	// Output:
	// <nil>
	// ready
	// true
}

// Wait bounds a campaign: who does not lead by then does something else.
func ExampleElection_Campaign() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := context.Background()
	e := election.New(session, "nightly report")
	_, leadership, _ := e.Campaign(ctx, "a")
	defer leadership.Resign()
	_, _, err := e.Campaign(ctx, "b", rlock.Wait(20*time.Millisecond))
	fmt.Println(errors.Is(err, rlock.ErrNotAcquired))
	// Output:
	// true
}
