package main_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// entry is one of a session in a line.
func entry(session string, number int) string {
	return fmt.Sprintf("g00002500005000%05d%s:%d", len(session), session, number)
}

// inLine makes a lock that is held, with a session of two callers in its line, one of a single caller behind,
// and one behind them that is heard of no more; and a connection that listens as another client does.
func inLine(tb testing.TB, s *redistest.Server) (hold *rlock.Hold, sessions []*rlock.Session) {
	tb.Helper()
	_, hold, err := rlock.New(dial(tb, s), "x").Lock(within(tb))
	must(tb, err)
	look := rlock.New(dial(tb, s), "x")
	callers := 0
	for i, n := range []int{2, 1} {
		session := dialAs(tb, s, fmt.Sprintf("web-%d", i+1))
		sessions = append(sessions, session)
		for range n {
			callers++
			inBackground(tb, func(ctx context.Context) error { _, _, err := rlock.New(session, "x").Lock(ctx); return err })
		}
		eventually(tb, "callers in the line", func() bool {
			got, err := look.Waiters(within(tb))
			must(tb, err)
			return got == callers
		})
	}
	dead := "00000000-0000-4000-8000-000000000000"
	position := fmt.Sprint(time.Now().Add(time.Hour).UnixMicro())
	must(tb, s.Do(tb, "ZADD", "relock_line1:{x}", position, entry(dead, 7), strconv.FormatInt(5e15-time.Now().Add(-time.Minute).UnixMilli(), 10), "s"+dead).Error())
	return hold, sessions
}

// show has the line of a lock in its order, and counts each waiter once: the first of the line listens to the
// lock's channel too, and is no other session.
func TestShowLine(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		_, sessions := inLine(t, s)
		c := newCLI(t, s)
		listens := listeners(t, s, "redisson_lock__channel:{x}")
		if listens != 1 {
			t.Errorf("%d listen to the lock's channel, want the first of the line", listens)
		}
		want := fmt.Sprintf("line 3, listen 0: %s web-1 2 false, %s web-2 1 false, 00000000-0000-4000-8000-000000000000  1 true", sessions[0].ID(), sessions[1].ID())
		settles(t, want, func() string {
			l := decode[lock](c, "show", "x")
			var all []string
			for _, e := range l.InLine {
				label := ""
				if e.Process != nil {
					label = e.Process.Label
				}
				all = append(all, fmt.Sprintf("%s %s %d %v", e.Session, label, e.Callers, e.Silent))
			}
			return fmt.Sprintf("line %d, listen %d: %s", l.Line, l.Waiting, strings.Join(all, ", "))
		})
		text := c.want(0, "show", "x").out
		at := 0
		for _, want := range []string{"3 callers in the line", "PLACE  PROCESS", "1      web-1", "2        waits", "2      web-2", "3      not known", "silent"} {
			i := strings.Index(text[at:], want)
			if i < 0 {
				t.Fatalf("no %q in its place in\n%s", want, text)
			}
			at += i
		}
		if l := decode[[]lock](c, "ls")[0]; l.Line != 3 || l.Waiting != 0 {
			t.Errorf("ls has %+v", l)
		}
		if text := c.want(0, "ls").out; !strings.Contains(text, " 3 ") {
			t.Errorf("ls counts other waiters:\n%s", text)
		}
	})
}

// Another client that listens to the lock's channel counts beside the line.
func TestShowOthersBesideTheLine(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		inLine(t, s)
		others := s.Client(t)
		inBackground(t, func(ctx context.Context) error {
			return others.Receive(ctx, others.B().Subscribe().Channel("redisson_lock__channel:{x}").Build(), func(rueidis.PubSubMessage) {})
		})
		c := newCLI(t, s)
		settles(t, "3+1", func() string { l := decode[lock](c, "show", "x"); return fmt.Sprintf("%d+%d", l.Line, l.Waiting) })
	})
}

// top finds a lock that is only waited for, by its line: nobody holds it, and nobody listens for it.
func TestTopFindsALine(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		alive := strconv.FormatInt(5e15-time.Now().Add(time.Hour).UnixMilli(), 10)
		for _, key := range []string{"relock_line1:{x}", "relock_line1:{a}b"} {
			must(t, s.Do(t, "ZADD", key, fmt.Sprint(time.Now().UnixMicro()), entry("one", 7), alive, "sone").Error())
		}
		silent := strconv.FormatInt(5e15-time.Now().Add(-time.Second).UnixMilli(), 10)
		must(t, s.Do(t, "ZADD", "relock_line1:{x}", fmt.Sprint(time.Now().UnixMicro()), entry("two", 8), silent, "stwo").Error())
		last := refreshes(newCLI(t, s), "-n", "2", "--interval", "100ms")
		if len(last.Top) != 2 || last.Top[0].Name != "x" && last.Top[1].Name != "x" || last.Top[0].Line != 1 || last.Top[1].Line != 1 || last.Top[0].Kind != "mutex" {
			t.Errorf("in view are %+v", last.Top)
		}
		if l := decode[[]lock](newCLI(t, s), "ls"); len(l) != 0 {
			t.Errorf("ls lists locks that nobody holds: %+v", l)
		}
		if l := decode[lock](newCLI(t, s), "show", "x"); l.Held || l.Line != 1 || len(l.InLine) != 2 || l.InLine[0].Silent || !l.InLine[1].Silent {
			t.Errorf("show has %+v", l)
		}
	})
}

// doctor says when a release may not ask who listens.
func TestDoctorFindsThatNobodyCanBeCounted(t *testing.T) {
	t.Parallel()
	u := newRestricted(t)
	level := func() (found finding) {
		t.Helper()
		for _, f := range examine(u.c, 0, "--name", "app:doctor") {
			if f.Check == "listeners" {
				found = f
			}
		}
		return found
	}
	if f := level(); f.Level != "ok" {
		t.Errorf("with all that is documented: %+v", f)
	}
	refused := "-pubsub|numsub"
	if !redistest.ServerVersion(t).AtLeast(7, 0) {
		refused = "-pubsub" // it takes back no subcommands
	}
	u.set(refused)
	if f := level(); f.Level != "warn" || f.Remedy != "allow +pubsub|numsub" {
		t.Errorf("after %s: %+v", refused, f)
	}
}

// show and ls have the line of a semaphore too.
func TestShowTheLineOfASemaphore(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		_, _, err := semaphore.New(dial(t, s), "x", 100).Acquire(within(t), 100)
		must(t, err)
		c := newCLI(t, s)
		line := func() string {
			var all []string
			for _, e := range decode[lock](c, "show", "x").InLine {
				if e.Process != nil {
					all = append(all, fmt.Sprintf("%s %d", e.Process.Label, e.Callers))
				}
			}
			return strings.Join(all, ", ")
		}
		want := ""
		for i, n := range []int{1, 100} { // so many are not granted by a release: their session is called
			label := fmt.Sprintf("web-%d", i+1)
			session := dialAs(t, s, label)
			inBackground(t, func(ctx context.Context) error {
				_, _, err := semaphore.New(session, "x", 100).Acquire(ctx, n)
				return err
			})
			want = strings.TrimPrefix(want+", "+label+" 1", ", ")
			settles(t, want, line)
		}
		if l := decode[[]lock](c, "ls")[0]; l.Line != 2 {
			t.Errorf("ls has %+v", l)
		}
	})
}
