package handover_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A bubble has two sessions on a miniredis in which commands take no time, so that who is
// let in when is no matter of luck.
type bubble struct {
	locktest.Passes
	t      *testing.T
	a, b   *rlock.Session // a hands over
	wg     sync.WaitGroup
	mu     sync.Mutex
	order  string // who was let in, "a" or "b"
	handed []int  // hand-overs by then
}

func inBubble(t *testing.T, limit int, fn func(b *bubble)) {
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		b := &bubble{t: t}
		b.a = locktest.DialBubble(t, m, rlock.Config{HandOverLimit: limit, Trace: b.Trace()})
		b.b = locktest.DialBubble(t, m, rlock.Config{})
		defer b.a.Close()
		defer b.b.Close()
		fn(b)
		b.wg.Wait()
	})
}

// wait has a goroutine of a session queue up, and be inside for that long.
func (b *bubble) wait(who string, inside time.Duration) {
	ses := b.a
	if who == "b" {
		ses = b.b
	}
	b.wg.Go(func() {
		_, h, err := rlock.New(ses, "x").Lock(context.Background())
		if err != nil {
			b.t.Error(err)
			return
		}
		b.mu.Lock()
		b.order += who
		b.handed = append(b.handed, b.Count())
		b.mu.Unlock()
		time.Sleep(inside)
		if err := h.Unlock(); err != nil {
			b.t.Error(err)
		}
	})
	synctest.Wait() // it stands in the queue, and listens if it must
}

// before returns how many of a were let in before the first of b.
func (b *bubble) before() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Index(b.order, "b")
}

// Another session that waits gets its turn when the lock has been passed on as often as
// HandOverLimit says; and so do all that wait, again and again.
func TestHandOverLimit(t *testing.T) {
	for _, limit := range []int{1, 2, 4, 100} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			inBubble(t, limit, func(b *bubble) {
				b.wait("a", time.Second)
				for range 4 * limit {
					b.wait("a", 0)
				}
				for range 3 {
					b.wait("b", 0)
				}
				locktest.Unhurried(b.a, "x") // the number is what ends it
				b.wg.Wait()
				if n := b.before(); n != limit+1 {
					t.Errorf("%d were let in before the other session, want the first and %d more: %.50s", n, limit, b.order)
				}
				if run := strings.Repeat("a", limit+2); strings.Contains(b.order[:strings.LastIndex(b.order, "b")], run) {
					t.Errorf("more than %d in a row while others wait: %.50s", limit+1, b.order)
				}
			})
		})
	}
}

// The time slice ends hand-overs without a limit.
func TestHandOverTimeLimit(t *testing.T) {
	inBubble(t, 0, func(b *bubble) {
		for range 40 {
			b.wait("a", 3*time.Millisecond)
		}
		b.wait("b", 0)
		b.wg.Wait()
		if n := b.before(); n < 2 || n > 5 { // 10 ms are for so many
			t.Errorf("%d sections of 3 ms before the other session's: %s", n, b.order)
		}
	})
}

// Where nobody else listens a slice is longer, but not endless, since others may wait unheard:
// one that begins to listen is let in when it ends.
func TestHandOverAlone(t *testing.T) {
	const inside = 200 * time.Microsecond
	inBubble(t, 0, func(b *bubble) {
		for range 2000 { // 400 ms
			b.wait("a", inside)
		}
		time.Sleep(300 * time.Millisecond)
		b.mu.Lock()
		entered, handed := len(b.order), b.Count()
		b.mu.Unlock()
		// Every 100 ms; and one more may have been handed over that has not entered yet.
		if through := entered - handed; through < 2 || through > 6 {
			t.Errorf("%d of %d came through Redis", through, entered)
		}
		b.wait("b", 0)
		time.Sleep(110 * time.Millisecond)
		if b.before() < 0 {
			t.Fatal("the other session was not let in within a slice")
		}
	})
}

// The same with real time and servers: a session that comes again and again gets its turns
// beside one whose goroutines never pause.
func TestHandOverDoesNotStarveOthers(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const limit, turns = 4, 40
		st := locktest.NewStage(t, s, rlock.Config{HandOverLimit: limit})
		other := dial(t, s, rlock.Config{})
		c := st.Start(6, st.Mutex, func(context.Context) {}, nil)
		st.Runs(50)
		before := st.Count()
		for range turns {
			must(t, rlock.New(other, st.Name).Do(st.Ctx, func(context.Context) error { return nil }))
		}
		n := st.Count() - before
		c.End()
		t.Logf("%d hand-overs beside %d turns", n, turns)
		locktest.NothingLeft(t, s, st.Session, other)
	})
}
