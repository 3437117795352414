package handover_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// Others see a lock in Redisson's shape at every moment of many hand-overs: one owner of the
// session, with one hold, and a lease.
func TestHandOverSeenFromOutside(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		st := locktest.NewStage(t, s, rlock.Config{})
		crew := st.Start(4, st.Mutex, func(context.Context) {}, nil)
		st.Runs(50)
		// In one script, so that it is one moment.
		const look = `return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1])}`
		seen := map[string]bool{}
		for range redistest.Rounds(400) {
			released := locktest.CallsSent(t, st.Proxy, "release")
			st.Proxy.Reset() // its log grows
			reply, err := s.Do(t, "EVAL", look, "1", st.Name).ToArray()
			must(t, err)
			ttl, err := reply[0].AsInt64()
			must(t, err)
			hash, err := reply[1].AsStrMap()
			must(t, err)
			if len(hash) == 0 {
				// So it is between two claims. The release was sent since the look before;
				// or it is under way still, and its count will be there with the next.
				if released == 0 {
					redistest.Eventually(t, 5*time.Second, "a release", func() bool { return locktest.CallsSent(t, st.Proxy, "release") > 0 })
				}
				continue
			}
			for owner, holds := range hash {
				if len(hash) != 1 || holds != "1" || !locktest.OfSession(st.Session, owner) || ttl <= 0 {
					t.Fatalf("Redis has %v with a TTL of %d ms", hash, ttl)
				}
				seen[owner] = true
			}
		}
		crew.End()
		if n := st.Count(); n < 10 {
			t.Errorf("%d hand-overs; this test is about many", n)
		}
		locktest.NothingLeft(t, s, st.Session)
	})
}

// Hand-overs send nothing: while they go on Redis has one owner, the same all the time.
func TestHandOverIsOneHoldInRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		var p locktest.Passes
		const n = 300
		ses := locktest.DialBubble(t, m, rlock.Config{HandOverLimit: n, Trace: p.Trace()})
		defer ses.Close()
		observer := locktest.DialBubble(t, m, rlock.Config{})
		defer observer.Close()
		mutex := rlock.New(ses, "x")
		_, h, err := mutex.Lock(context.Background())
		must(t, err)
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				err := mutex.Do(context.Background(), func(context.Context) error {
					time.Sleep(time.Microsecond)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		locktest.Unhurried(ses, "x")
		must(t, h.Unlock())
		seen := ownersSeen(t, rlock.New(observer, "x"), &p, n)
		wg.Wait()
		if len(seen) != 1 || p.Count() != n {
			t.Errorf("%d owners were seen in %d hand-overs, want one", len(seen), p.Count())
		}
		if keys := redistest.LockKeys(m.Keys()); len(keys) > 0 {
			t.Errorf("left in Redis: %q", keys)
		}
	})
}

// ownersSeen looks at a lock until it has been handed over n times, and returns the owners that Redis had. At each
// moment that is one, with one hold, and the one that is inside.
func ownersSeen(t *testing.T, m *rlock.Mutex, p *locktest.Passes, n int) (seen map[string]bool) {
	t.Helper()
	look := func() rlock.State {
		st, err := m.State(context.Background())
		must(t, err)
		return st
	}
	seen = map[string]bool{}
	for p.Count() < n {
		st := look()
		for owner, holds := range st.Owners {
			if len(st.Owners) != 1 || holds != 1 || st.TTL <= 0 {
				t.Fatalf("after %d hand-overs Redis has %v", p.Count(), st)
			}
			seen[owner] = true
		}
		if len(st.Owners) == 0 && p.Count() < n {
			t.Fatalf("after %d hand-overs Redis has nobody", p.Count())
		}
		synctest.Wait()
		if st := look(); p.Count() < n && st.Owners[p.Last()] != 1 {
			t.Fatalf("Redis has %v, and %q is inside", st, p.Last())
		}
		time.Sleep(time.Microsecond)
	}
	return seen
}

// R1: the network goes silent between hand-overs. The section that is open then ends before
// the lease that Redis counts is over, and before another session is let in; and what arrives
// late does not touch that one.
func TestHandOverPartition(t *testing.T) {
	t.Parallel()
	for _, unheard := range []int{1, 3} {
		t.Run(fmt.Sprint(unheard), func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				lease := s.Slowed(2 * time.Second)
				stalls := locktest.WatchStalls(t)
				st := locktest.NewStage(t, s, rlock.Config{Lease: lease, ReleaseTimeout: 300 * time.Millisecond})
				other := dial(t, s, rlock.Config{Lease: lease})
				_, h := st.Lock(st.Ctx)
				first, waiters := st.Queue(st.Ctx), []<-chan locktest.Locked{}
				for range unheard {
					waiters = append(waiters, st.Queue(st.Ctx))
				}
				last := st.Queue(st.Ctx)
				<-time.After(lease / 4) // so that the lease of the first one is over sooner
				in := st.HandOver(h, first)
				st.Stands("1")
				st.Proxy.BlackHole(true)
				from := time.Now() // whatever Redis has heard of was sent before
				for _, next := range waiters {
					in = st.HandOver(in.Hold, next)
				}
				stood := make(chan bool, 1)
				context.AfterFunc(in.Ctx, func() {
					n, err := s.Do(t, "HLEN", st.Name).AsInt64()
					stood <- err == nil && n == 1
				})
				next := locktest.GoLock(rlock.New(other, st.Name), st.Ctx)
				locktest.Stays(t, in.Ctx, lease/2)
				locktest.Ends(t, in.Ctx, lease/2+s.Slack(), rlock.ErrLost)
				d := time.Since(from)
				// A twentieth of the lease is the margin, and the look takes some of it.
				if !locktest.Get(t, stood, s.Slack(), "a look at Redis") && stalls.Longest() < lease/100 {
					t.Errorf("the section ended %v after the network was cut, and Redis had given the lock up before", d)
				}
				locktest.Is(t, "Unlock", in.Hold.Unlock(), rlock.ErrLost)
				st.Outside(last, "the next waiter of the session that is cut off")
				got := st.In(next)
				st.Proxy.BlackHole(false)
				for end := time.Now().Add(lease / 2); time.Now().Before(end); {
					locktest.Stays(t, got.Ctx, 10*time.Millisecond)
					if owner := locktest.OnlyOwner(t, st); !locktest.OfSession(other, owner) {
						t.Fatalf("the other session is inside, and Redis has %q", owner)
					}
				}
				st.Outside(last, "the next waiter")
				must(t, got.Hold.Unlock())
				must(t, st.In(last).Hold.Unlock())
				locktest.NothingLeft(t, s, st.Session, other)
			})
		})
	}
}

// This very test program, started with these in its environment, is another process in
// which goroutines take turns with a lock.
const (
	childAddr = "RELOCK_RLOCK_CHILD_ADDR"
	childName = "RELOCK_RLOCK_CHILD_NAME"
)

const childLease = time.Second

// runChild is that process. It says so when a thousand hand-overs are done, and ends with
// its parent at the latest.
func runChild(addr, name string) {
	var handed atomic.Int64
	opt := rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}
	ses, err := rlock.Dial(context.Background(), opt, rlock.Config{Lease: childLease, Trace: &rlock.Trace{
		HandedOver: func(locktrace.HandedOver) {
			if handed.Add(1) == 1000 {
				fmt.Println("running")
			}
		},
	}})
	if err != nil {
		os.Exit(3)
	}
	for range 4 {
		go func() {
			var err error
			for err == nil || errors.Is(err, rlock.ErrLost) { // as on a machine that is busy for a lease
				err = rlock.New(ses, name).Do(context.Background(), func(context.Context) error { return nil })
			}
		}()
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// A process is killed between hand-overs: one lease later, at the latest, the lock is
// free.
func TestHandOverProcessIsKilled(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		met, often := 0, 3
		if testing.Short() {
			often = 1
		}
		for round := 0; round < 10 && met < often; round++ {
			name := redistest.Name(t)
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childAddr+"="+s.Addr, childName+"="+name)
			_, err := cmd.StdinPipe() // open until this process ends
			must(t, err)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			kill := sync.OnceFunc(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			t.Cleanup(kill)
			line := make([]byte, len("running"))
			_, err = io.ReadFull(out, line)
			must(t, err)
			if !strings.HasPrefix(string(line), "running") {
				t.Fatalf("the child says %q", line)
			}
			kill()
			from := time.Now()
			if locktest.Owners(t, s, name) == 1 {
				met++
			}
			ses := dial(t, s, rlock.Config{})
			_, h, err := rlock.New(ses, name).Lock(ctx)
			must(t, err)
			if d := time.Since(from); d > childLease+s.Slack() {
				t.Errorf("the lock was free %v after its holder's death; the lease is %v", d, childLease)
			}
			must(t, h.Unlock())
			locktest.NothingLeft(t, s, ses)
		}
		if met == 0 {
			t.Error("nobody was inside whenever the process was killed")
		}
	})
}
