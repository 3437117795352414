package rwlock_test

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
	"relock/rwlock"
)

// childEnv makes TestChildReader hold the lock for the test that started it.
const childEnv = "RELOCK_TEST_READER_ON"

// TestChildReader is run in a process of its own, by the test below, and killed there.
func TestChildReader(t *testing.T) {
	addr := os.Getenv(childEnv)
	if addr == "" {
		t.Skip("is run by TestDeadReaderKeepsNobodyOut")
	}
	ses, err := rlock.Dial(context.Background(), rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}, rlock.Config{Lease: 2 * time.Second})
	must(t, err)
	_, h, err := rwlock.New(ses, "x").RLock(context.Background())
	must(t, err)
	fmt.Println("held by", h.Owner())
	select {}
}

// A reader's process is killed: other readers go on, a writer gets in when they have left
// and the dead one's own lease is over, and not later (R22).
func TestDeadReaderKeepsNobodyOut(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const lease = 2 * time.Second // the child's
		ctx := within(t, 60*time.Second)
		child := exec.Command(os.Args[0], "-test.run=^TestChildReader$", "-test.v")
		child.Env = append(os.Environ(), childEnv+"="+s.Addr)
		out, err := child.StdoutPipe()
		must(t, err)
		must(t, child.Start())
		t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
		held := make(chan string, 1)
		go func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if owner, ok := strings.CutPrefix(lines.Text(), "held by "); ok {
					held <- owner
				}
			}
		}()
		dead := locktest.Get(t, held, 20*time.Second, "the child to hold the lock")

		m, w := rwlock.New(dial(t, s, rlock.Config{Lease: 4 * lease}), "x"), rwlock.New(dial(t, s, slow), "x")
		section, r := hold(t, ctx, m.RLock) // is renewed: the hash outlives the dead one
		must(t, child.Process.Kill())
		killed := time.Now()
		waiting := goLock(ctx, w.Lock)
		redistest.Eventually(t, 10*time.Second, "the dead reader to be over", func() bool {
			st, err := m.State(ctx)
			_, there := st.Owners[dead]
			return err == nil && !there
		})
		if took := time.Since(killed); took > lease+s.Slack() {
			t.Errorf("the dead reader was over after %v, its lease is %v", took, lease)
		}
		if section.Err() != nil || field(t, s, "x", r.Owner()) != "1" {
			t.Fatal("the dead reader took another one along")
		}
		notIn(t, waiting, "a reader is left")
		must(t, r.Unlock())
		must(t, in(t, waiting, 5*time.Second, "the writer, when the last living reader has left").hold.Unlock())
		// The ids of the dead one's holds live as long as the hash did when it renewed them last.
		nothingLeft(t, s)
	})
}

// The same with the dead reader alone: the writer waits for no longer than its lease.
func TestWriterWaitsForADeadReadersLeaseAlone(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 60*time.Second)
		lease, stalls := s.Slowed(time.Second), locktest.WatchStalls(t)
		a, p := locktest.DialProxy(t, s, rlock.Config{Lease: lease})
		b, w := rwlock.New(dial(t, s, slow), "x"), rwlock.New(dial(t, s, slow), "x")
		_, long := hold(t, ctx, b.RLock, rlock.Lease(time.Minute))
		section, _ := hold(t, ctx, rwlock.New(a, "x").RLock)
		p.BlackHole(true) // as good as dead
		cut := time.Now()
		must(t, long.Unlock())
		writer := in(t, goLock(ctx, w.Lock), 20*time.Second, "the writer")
		if took := time.Since(cut); took > lease+s.Slack() {
			t.Errorf("the writer waited %v for a lease of %v", took, lease)
		}
		if section.Err() == nil && stalls.Longest() < lease/100 {
			t.Error("the writer is in, and the reader that is cut off has not been told")
		}
		must(t, writer.hold.Unlock())
	})
}
