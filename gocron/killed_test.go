package gocron_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/redis/rueidis"

	relockgocron "relock/gocron"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// This very test program, started with this in its environment, is another process, which schedules the job
// and says when it runs.
const childAddr = "RELOCK_GOCRON_CHILD_ADDR"

// childLease is that of those processes.
const childLease = 3 * time.Second

// runChild is that process. It ends with its parent at the latest.
func runChild(addr string) {
	ses, err := rlock.Dial(context.Background(), rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true},
		rlock.Config{Lease: childLease})
	if err != nil {
		os.Exit(3)
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(relockgocron.NewLocker(ses)))
	if err != nil {
		os.Exit(4)
	}
	_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(func() {
		fmt.Println("in")
		time.Sleep(300 * time.Millisecond) // in which it can be killed
	}), gocron.WithName("report"))
	if err != nil {
		os.Exit(5)
	}
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// A run is one of a child.
type run struct {
	by *exec.Cmd
	at time.Time
}

// startChild starts one, which tells of its runs.
func startChild(t *testing.T, addr string, ran chan<- run) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childAddr+"="+addr)
	_, err := cmd.StdinPipe() // open until this process ends
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			ran <- run{cmd, time.Now()}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	})
}

// A process that is killed while it runs the job leaves the lock for its lease. The times in between are
// skipped, in all processes; after that the job is run once at each time again.
func TestOneIsKilledInTheMiddle(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		if s.IsMini() && testing.Short() {
			t.Skip("SKIPPED with -short: it waits")
		}
		stalls := locktest.WatchStalls(t)
		const fatal = 5 // the run in which its process is killed
		ran := make(chan run, 100)
		for range 3 {
			startChild(t, s.Addr, ran)
		}
		var all []run
		for len(all) < fatal {
			all = append(all, locktest.Get(t, ran, time.Minute, "the job to run"))
		}
		must(t, all[fatal-1].by.Process.Kill()) // SIGKILL
		killed := time.Now()
		for time.Since(all[0].at) < (ticks-1)*time.Second+500*time.Millisecond {
			select {
			case r := <-ran:
				all = append(all, r)
			case <-time.After(time.Second / 10):
			}
		}
		gap := all[fatal].at.Sub(killed)
		t.Logf("%d runs of %d; the next one came %v behind the death; the longest stall was %v", len(all), ticks, gap, stalls.Longest())
		slack := 300*time.Millisecond + 2*stalls.Longest()
		// The lease began when the lock was acquired; the next run is at the first second behind its end.
		if gap < childLease-time.Second/3-slack || gap > childLease+time.Second+slack {
			t.Errorf("the next run came %v behind the death of a process with a lease of %v", gap, childLease)
		}
		for i, r := range all[1:] {
			if d := r.at.Sub(all[i].at); i != fatal-1 && (d < time.Second-slack || d > time.Second+slack) {
				t.Errorf("run %d came %v behind the last", i+1, d)
			}
			if i >= fatal-1 && r.by == all[fatal-1].by {
				t.Errorf("run %d is of the process that was killed", i+1)
			}
		}
	})
}
