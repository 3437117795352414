package semaphore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// childAddr is the variable with the server's address that makes this test binary hold
// three permits of "x" until it is killed; the other one has their lease.
const (
	childAddr  = "RELOCK_SEMAPHORE_CHILD"
	childLease = "RELOCK_SEMAPHORE_CHILD_LEASE"
)

func child(addr string) {
	var ses *rlock.Session
	lease, err := time.ParseDuration(os.Getenv(childLease))
	if err == nil {
		opt := rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}
		ses, err = rlock.Dial(context.Background(), opt, rlock.Config{Lease: lease})
	}
	if err == nil {
		_, _, err = semaphore.New(ses, "x", 5).Acquire(context.Background(), 3)
	}
	fmt.Println("held:", err)
	select {}
}

// What a process held that was killed comes back after one lease: just that, and not
// before (R25).
func TestPermitsOfAKilledProcessComeBack(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 30*time.Second)
		ses := dial(t, s, rlock.Config{})
		m := semaphore.New(ses, "x", 5)
		_, mine, err := m.Acquire(ctx, 1)
		must(t, err)

		lease := 4 * time.Second // which a busy machine renews in time
		if testing.Short() {
			lease = time.Second
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childAddr+"="+s.Addr, childLease+"="+lease.String())
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "held: <nil>") {
			t.Fatalf("the child says %q, %v", line, err)
		}
		available(t, ctx, m, 1)
		waiter := acquire(ctx, m, 4)
		// Renewed meanwhile: it holds them for longer than a lease.
		_, _, err = m.Acquire(ctx, 4, rlock.Wait(lease*5/4))
		is(t, "while it lives", err, rlock.ErrNotAcquired)
		waits(t, "the waiter", waiter)

		must(t, cmd.Process.Kill()) // SIGKILL
		killed := time.Now()
		_ = cmd.Wait()
		g := locktest.Get(t, waiter, lease+2*s.Slack(), "the permits to come back")
		must(t, g.err)
		if d := time.Since(killed); d > lease+s.Slack() {
			t.Errorf("they came back after %v", d)
		}
		available(t, ctx, m, 0)
		must(t, g.p.Release())
		available(t, ctx, m, 4)
		must(t, mine.Release())
		if got := locktest.Describe(t, s); got != "x=5" {
			t.Errorf("Redis has %s", got)
		}
	})
}
