package beside_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"relock/relocktest"
	"relock/rlock"
)

// inOneProcess has a job run in one of the processes that start it at the same time.
func inOneProcess(m *rlock.Mutex, atLeast time.Duration) cron.JobWrapper {
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() {
			err := m.Do(context.Background(), func(context.Context) error {
				job.Run()
				return nil
			}, rlock.Wait(0), rlock.AtLeast(atLeast))
			if err != nil && !errors.Is(err, rlock.ErrNotAcquired) { // else another process runs it, or has run it
				slog.Error("cron", "job", m.Name(), "error", err)
			}
		})
	}
}

// Two processes have the same table of jobs.
func Example_robfigCron() {
	session, _, done := relocktest.Open()
	defer done()
	sent := make(chan string, 2)
	var started sync.WaitGroup
	for range 2 {
		started.Add(1)
		once := cron.NewChain(inOneProcess(rlock.New(session, "newsletter"), 10*time.Second))
		c := cron.New(cron.WithSeconds())
		var first sync.Once
		job := once.Then(cron.FuncJob(func() { sent <- "sent" }))
		c.Schedule(cron.Every(time.Second), cron.FuncJob(func() { job.Run(); first.Do(started.Done) }))
		c.Start()
		defer func() { <-c.Stop().Done() }()
	}
	fmt.Println(<-sent)
	started.Wait()
	fmt.Println("more:", len(sent))
	// Output:
	// sent
	// more: 0
}

// Three processes start a job 20 times, and it is run 20 times.
func TestRobfigCronRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := relocktest.Start(t)
		var runs atomic.Int32
		time.Sleep(500 * time.Millisecond)
		for range 3 {
			session := redis.Session(t, rlock.Config{})
			c := cron.New(cron.WithSeconds(), cron.WithChain(inOneProcess(rlock.New(session, "newsletter"), 500*time.Millisecond)))
			if _, err := c.AddFunc("* * * * * *", func() { runs.Add(1) }); err != nil {
				t.Fatal(err)
			}
			c.Start()
			t.Cleanup(func() { <-c.Stop().Done() })
		}
		time.Sleep(20 * time.Second)
		if n := runs.Load(); n != 20 {
			t.Errorf("%d runs, want 20", n)
		}
	})
}
