package gocron_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"relock/election"
	relockgocron "relock/gocron"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

var must = locktest.Must

// A shifted clock is that of another host.
type shifted struct {
	clockwork.Clock
	by time.Duration
}

func (c shifted) Now() time.Time { return c.Clock.Now().Add(c.by) }

// runs are those of one job in all processes.
type runs struct {
	mu  sync.Mutex
	at  []time.Time
	who []int
}

func (r *runs) add(who int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.who = append(r.at, time.Now()), append(r.who, who)
}

// beside awaits the next time of the test's clock that is so far behind a full second.
func beside(second time.Duration) {
	now := time.Now()
	next := now.Truncate(time.Second).Add(second)
	if !next.After(now) {
		next = next.Add(time.Second)
	}
	time.Sleep(next.Sub(now))
}

// schedule starts a scheduler that runs a job each second, by a clock that is ahead of the test's.
func schedule(t testing.TB, ahead time.Duration, job func(), opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	opts = append(opts, gocron.WithClock(shifted{clockwork.NewRealClock(), ahead}))
	s, err := gocron.NewScheduler(opts...)
	must(t, err)
	_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(job), gocron.WithName("report"))
	must(t, err)
	s.Start()
	return s
}

const ticks = 20

// Three schedulers run a job that each starts 20 times. It is run 20 times, once at each time, also if
// the clocks of the hosts are apart.
func TestEachTickIsRunOnce(t *testing.T) {
	for _, apart := range []time.Duration{0, 200 * time.Millisecond} {
		t.Run(fmt.Sprint(2*apart), func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				stalls := locktest.WatchStalls(t)
				var ran runs
				var all []gocron.Scheduler
				beside(600 * time.Millisecond) // behind the last start of a second
				for i := range 3 {
					ses := locktest.Dial(t, s, rlock.Config{Prefix: "app:"})
					locker := relockgocron.NewLocker(ses, relockgocron.AtLeast(500*time.Millisecond), relockgocron.Prefix("cron:"))
					all = append(all, schedule(t, -time.Duration(i)*apart, func() { ran.add(i) }, gocron.WithDistributedLocker(locker)))
				}
				time.Sleep(ticks * time.Second)
				for _, s := range all {
					must(t, s.Shutdown())
				}
				t.Logf("%d runs of %d, by %v; the longest stall was %v", len(ran.at), ticks, ran.who, stalls.Longest())
				// Up to so late a process may start the job without running it a second time, or too early.
				slack := 500*time.Millisecond - 2*apart
				if n := len(ran.at); n != ticks && stalls.Longest() < slack/2 {
					t.Errorf("%d runs, want %d, by %v at %v", n, ticks, ran.who, ran.at)
				}
			})
		})
	}
}

// A job that takes longer than its interval is never run beside itself, in one process or in two.
func TestALongJobIsNotRunBesideItself(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var inside, ran atomic.Int32
		var all []gocron.Scheduler
		for range 2 {
			all = append(all, schedule(t, 0, func() {
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d runs at once", n)
				}
				time.Sleep(1500 * time.Millisecond)
				inside.Add(-1)
				ran.Add(1)
			}, gocron.WithDistributedLocker(relockgocron.NewLocker(locktest.Dial(t, s, rlock.Config{})))))
		}
		redistest.Eventually(t, time.Minute, "some runs", func() bool { return ran.Load() >= 3 })
		for _, s := range all {
			must(t, s.Shutdown())
		}
	})
}

// With an elector the leader runs all jobs; when it has resigned the next leader does.
func TestElector(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var ran runs
		var stop []context.CancelFunc
		var over []chan error
		for i := range 2 {
			ses := locktest.Dial(t, s, rlock.Config{})
			e := election.New(ses, "scheduler")
			ctx, cancel := context.WithCancel(locktest.Within(t, time.Minute))
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx, "", election.Callbacks{}) }()
			if i == 0 {
				redistest.Eventually(t, 20*time.Second, "the first to lead", e.IsLeader)
			}
			stop, over = append(stop, cancel), append(over, ended)
			sched := schedule(t, 0, func() { ran.add(i) }, gocron.WithDistributedElector(relockgocron.NewElector(e)))
			defer func() { must(t, sched.Shutdown()) }()
		}
		runs := func(n, who int) func() bool {
			return func() bool {
				ran.mu.Lock()
				defer ran.mu.Unlock()
				return len(ran.who) >= n && ran.who[len(ran.who)-1] == who
			}
		}
		redistest.Eventually(t, time.Minute, "the leader to run the job", runs(2, 0))
		stop[0]()
		must(t, <-over[0])
		redistest.Eventually(t, time.Minute, "the next leader to run the job", runs(4, 1))
		stop[1]()
		must(t, <-over[1])
		ran.mu.Lock()
		defer ran.mu.Unlock()
		if !slices.IsSorted(ran.who) {
			t.Errorf("the job was run by %v", ran.who)
		}
	})
	if err := relockgocron.NewElector(nil).IsLeader(t.Context()); !errors.Is(err, relockgocron.ErrNotLeader) {
		t.Errorf("without an election: %v", err)
	}
}

// A scheduler with an elector asks no locker, as the documentation says: the job runs, and beside itself.
func TestAnElectorStandsInPlaceOfALocker(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		e := election.New(locktest.Dial(t, s, rlock.Config{}), "scheduler")
		_, l, err := e.Campaign(locktest.Within(t, time.Minute), "")
		must(t, err)
		refuses := relockgocron.NewLocker(nil)
		inside, end := make(chan struct{}, 100), make(chan struct{})
		sched := schedule(t, 0, func() { inside <- struct{}{}; <-end },
			gocron.WithDistributedElector(relockgocron.NewElector(e)), gocron.WithDistributedLocker(refuses))
		for range 2 {
			locktest.Get(t, inside, time.Minute, "the job to run")
		}
		close(end)
		must(t, sched.Shutdown())
		must(t, l.Resign())
	})
}
