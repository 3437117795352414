package gocron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"relock/election"
	relockgocron "relock/gocron"
	"relock/relocktest"
	"relock/rlock"
)

// scheduler is that of each process. Its jobs are minutes apart, and the clocks of the hosts less than 10 s.
func scheduler(session *rlock.Session) (gocron.Scheduler, error) {
	locker := relockgocron.NewLocker(session, relockgocron.AtLeast(10*time.Second))
	return gocron.NewScheduler(gocron.WithDistributedLocker(locker))
}

// Two processes schedule a report at the same time, and one of them writes it.
func Example() {
	session, _, done := relocktest.Open() // each process has one of its own
	defer done()
	written := make(chan string, 2)
	at := time.Now().Add(50 * time.Millisecond)
	for range 2 {
		s, err := scheduler(session)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Shutdown()
		report := gocron.NewTask(func() { written <- "written" })
		if _, err := s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at)), report, gocron.WithName("report")); err != nil {
			fmt.Println(err)
			return
		}
		s.Start()
	}
	fmt.Println(<-written)
	select {
	case <-written:
		fmt.Println("twice")
	case <-time.After(200 * time.Millisecond):
	}
	// Output:
	// written
}

// The leader runs all jobs of its scheduler.
func ExampleNewElector() {
	session, _, done := relocktest.Open()
	defer done()
	e := election.New(session, "scheduler")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	leading, over := make(chan struct{}), make(chan error, 1)
	go func() { // again after an ErrLost
		over <- e.Run(ctx, "10.0.0.1", election.Callbacks{OnStartedLeading: func(context.Context) { close(leading) }})
	}()
	<-leading

	s, err := gocron.NewScheduler(gocron.WithDistributedElector(relockgocron.NewElector(e)))
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan string)
	if _, err := s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() { ran <- "done" })); err != nil {
		fmt.Println(err)
		return
	}
	s.Start()
	fmt.Println(<-ran)
	fmt.Println(s.Shutdown())
	stop() // behind the last job
	fmt.Println(<-over)
	// Output:
	// done
	// <nil>
	// <nil>
}
