package rwlock_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// deadInLine puts n entries in the line of x, written as line.lua and gate.lua say, of sessions that were killed a moment
// ago: nobody listens to their channels.
func deadInLine(t testing.TB, s *redistest.Server, letter string, n int) {
	t.Helper()
	clock, err := s.Do(t, "TIME").AsIntSlice()
	must(t, err)
	now := clock[0]*1000 + clock[1]/1000
	position := now * 1000
	if letter == "R" {
		position = 88e14 + now
	}
	cmd := []string{"ZADD", locktest.LineOf("x")}
	for i := range n {
		id := fmt.Sprintf("dead%04d", i)
		cmd = append(cmd, strconv.FormatInt(position, 10), fmt.Sprintf("%s00012500005000%05d%s:1", letter, len(id), id),
			strconv.FormatInt(5e15-now-5000, 10), "s"+id)
	}
	must(t, s.Do(t, cmd...).Error())
	must(t, s.Do(t, "PEXPIRE", locktest.LineOf("x"), "60000").Error())
}

// A lineOf is a way to wait for x, and how an entry of that begins.
type lineOf struct {
	letter string
	lock   func(ses *rlock.Session) lockFunc
}

var exclusiveLines = map[string]lineOf{
	"plain": {"g", func(ses *rlock.Session) lockFunc { return rlock.New(ses, "x").Lock }},
	"write": {"V", func(ses *rlock.Session) lockFunc { return rwlock.New(ses, "x").Lock }},
}

var reading = lineOf{"R", func(ses *rlock.Session) lockFunc { return rwlock.New(ses, "x").RLock }}

// waits has a session wait in the line, behind all that stand there. It does not look again within the test.
func (l lineOf) waits(t *testing.T, ctx context.Context, s *redistest.Server) <-chan locked {
	t.Helper()
	locktest.Stays(t, ctx, time.Millisecond) // in a bubble it would come at the same time
	before := inLine(t, s, "x", "gzVURS")
	c := goLock(ctx, l.lock(dial(t, s, slow)))
	redistest.Eventually(t, 10*time.Second, "a caller in the line", func() bool { return inLine(t, s, "x", "gzVURS") > before })
	locktest.Stays(t, ctx, time.Millisecond)
	return c
}

// eachBehindTheDead runs fn for each kind of line, and for some dead entries in it, also for more than one script passes over.
func eachBehindTheDead(t *testing.T, lines map[string]lineOf, fn func(t *testing.T, ctx context.Context, s *redistest.Server, l lineOf, dead int)) {
	t.Parallel()
	for name, l := range lines {
		for _, dead := range []int{1, 15, 16, 40} {
			t.Run(fmt.Sprint(name, "/", dead), func(t *testing.T) {
				redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) { fn(t, within(t, time.Hour), s, l, dead) })
			})
		}
	}
}

// The first of the line leaves it while a lock stands that nobody renews. The next ones are dead: the one behind them
// comes in when the lock ends.
func TestTheFirstLeavesTheLineToOneBehindTheDead(t *testing.T) {
	eachBehindTheDead(t, exclusiveLines, func(t *testing.T, ctx context.Context, s *redistest.Server, l lineOf, dead int) {
		fields := map[string][]string{"g": {"java:1", "1"}, "V": {"mode", "write", "java:1:write", "1"}}[l.letter]
		must(t, s.Do(t, append([]string{"HSET", "x"}, fields...)...).Error())
		must(t, s.Do(t, "PEXPIRE", "x", "3000").Error())
		waits, leave := context.WithCancel(ctx)
		first := l.waits(t, waits, s)
		deadInLine(t, s, l.letter, dead)
		live := l.waits(t, ctx, s)
		leave()
		is(t, "the first", locktest.Get(t, first, 5*time.Second, "the first to leave").err, context.Canceled)
		must(t, in(t, live, 10*time.Second, "the one behind the dead").hold.Unlock())
	})
}

// An Unlock leaves the lock standing for a while, and the first of the line are dead: the one behind them comes in when the
// lock ends.
func TestALockThatIsLeftStandingGoesToOneBehindTheDead(t *testing.T) {
	lines := maps.Clone(exclusiveLines)
	lines["read"] = reading
	eachBehindTheDead(t, lines, func(t *testing.T, ctx context.Context, s *redistest.Server, l lineOf, dead int) {
		holder := l
		if l.letter == "R" {
			holder, dead = exclusiveLines["write"], dead+1 // the first two readers of the line are told
		}
		_, h := hold(t, ctx, holder.lock(dial(t, s, slow)), rlock.AtLeast(2*time.Second))
		deadInLine(t, s, l.letter, dead)
		live := l.waits(t, ctx, s)
		must(t, h.Unlock())
		must(t, in(t, live, 10*time.Second, "the one behind the dead").hold.Unlock())
	})
}

// A writer leaves, and more readers have died than the gate calls at once: the one behind them comes in.
func TestTheGateOpensToAReaderBehindTheDead(t *testing.T) {
	t.Parallel()
	for _, dead := range []int{255, 256, 300, 1023, 1024, 1500} {
		t.Run(strconv.Itoa(dead), func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx := within(t, time.Hour)
				_, h := hold(t, ctx, exclusiveLines["write"].lock(dial(t, s, slow)))
				deadInLine(t, s, "R", dead)
				live := reading.waits(t, ctx, s)
				must(t, h.Unlock())
				must(t, in(t, live, 10*time.Second, "the reader behind the dead").hold.Unlock())
			})
		})
	}
}

// However a lock is ended, the one behind the dead comes in.
func TestALockThatEndsGoesToOneBehindTheDead(t *testing.T) {
	for how, end := range map[string]func(ctx context.Context, l lineOf, ses *rlock.Session, h *rlock.Hold) error{
		"Unlock": func(_ context.Context, _ lineOf, _ *rlock.Session, h *rlock.Hold) error { return h.Unlock() },
		"ForceUnlock": func(ctx context.Context, l lineOf, ses *rlock.Session, _ *rlock.Hold) (err error) {
			if l.letter == "V" {
				_, err = rwlock.New(ses, "x").ForceUnlock(ctx)
			} else {
				_, err = rlock.New(ses, "x").ForceUnlock(ctx)
			}
			return err
		},
	} {
		t.Run(how, func(t *testing.T) {
			eachBehindTheDead(t, exclusiveLines, func(t *testing.T, ctx context.Context, s *redistest.Server, l lineOf, dead int) {
				ses := dial(t, s, slow)
				_, h := hold(t, ctx, l.lock(ses))
				deadInLine(t, s, l.letter, dead)
				live := l.waits(t, ctx, s)
				must(t, end(ctx, l, ses, h))
				must(t, in(t, live, 10*time.Second, "the one behind the dead").hold.Unlock())
			})
		})
	}
}
