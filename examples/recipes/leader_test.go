package recipes_test

import (
	"context"
	"errors"
	"fmt"

	"relock/election"
	"relock/fairlock"
	"relock/relocktest"
	"relock/rlock"
)

// lead stands for election until ctx ends, and works whenever it leads. work returns when its
// context ends, or with an error when another process should take over.
func lead(ctx context.Context, e *election.Election, address string, work func(ctx context.Context, term int64) error) error {
	for {
		leading, leadership, err := e.Campaign(ctx, address)
		if err != nil {
			return err // ctx has ended, or the session was closed
		}
		err = work(leading, leadership.Term())
		if resigned := leadership.Resign(); resigned != nil && !errors.Is(resigned, rlock.ErrLost) {
			return errors.Join(err, resigned)
		}
		if err != nil {
			return err
		}
	}
}

// leadAsClientGo is lead for those who know client-go: work runs while this process leads, and serve
// is told the address of each new leader, "" if nobody leads.
func leadAsClientGo(ctx context.Context, e *election.Election, address string, work func(ctx context.Context), serve func(leader string)) error {
	for {
		err := e.Run(ctx, address, election.Callbacks{
			OnStartedLeading: work, // returns soon after its ctx has ended
			OnNewLeader:      func(l election.Leader) { serve(l.Value) },
		})
		if !errors.Is(err, rlock.ErrLost) {
			return err // nil: ctx has ended, and it has resigned
		}
	}
}

// A leadership that is lost is followed by another.
func Example_leaderAsClientGo() {
	session, _, done := relocktest.Open()
	defer done()
	scheduler := election.New(session, "scheduler")
	ctx, stop := context.WithCancel(context.Background())
	times := 0
	served := make(chan string, 100)
	err := leadAsClientGo(ctx, scheduler, "10.0.0.1:8080", func(leading context.Context) {
		if times++; times == 2 {
			stop()
		} else if _, err := fairlock.New(session, "scheduler").ForceUnlock(ctx); err != nil {
			fmt.Println(err)
		}
		<-leading.Done()
		fmt.Println(context.Cause(leading))
	}, func(leader string) { served <- leader })
	fmt.Println(err, times)
	// Output:
	// rlock: lock lost
	// context canceled
	// <nil> 2
}

// The second candidate leads when the first one has failed.
func Example_leader() {
	session, _, done := relocktest.Open()
	defer done()
	scheduler := election.New(session, "scheduler")
	ctx, stop := context.WithCancel(context.Background())

	err := lead(ctx, scheduler, "10.0.0.1:8080", func(_ context.Context, term int64) error {
		return fmt.Errorf("out of disk in term %d", term)
	})
	fmt.Println(err)
	err = lead(ctx, scheduler, "10.0.0.2:8080", func(leading context.Context, term int64) error {
		now, _ := scheduler.Leader(leading)
		fmt.Println(now.Value, "leads in term", term)
		stop()
		<-leading.Done()
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// out of disk in term 1
	// 10.0.0.2:8080 leads in term 2
	// true
}
