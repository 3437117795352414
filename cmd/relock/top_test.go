package main_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// totals are what top prints with --json.
type totals struct {
	Locks    int     `json:"locks"`
	Found    int     `json:"found"`
	Scripts  float64 `json:"scripts_per_second"`
	Commands float64 `json:"commands_per_second"`
	Top      []struct {
		lock
		Held    float64 `json:"held_ratio"`
		Changes float64 `json:"changes_per_second"`
	} `json:"top"`
}

// refreshes calls top and returns what it says in the end.
func refreshes(c cli, args ...string) (last totals) {
	c.tb.Helper()
	r := c.want(0, append([]string{"top", "--json"}, args...)...)
	for line := range strings.Lines(r.out) {
		last = totals{}
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			c.tb.Fatalf("%v in %s", err, line)
		}
	}
	return last
}

// busy makes a lock that passes between two sessions without end, one that is held and
// waited for, and one with a fair queue.
func busy(tb testing.TB, s *redistest.Server) {
	tb.Helper()
	for range 2 {
		session, err := rlock.Dial(context.Background(), s.Option(), rlock.Config{HandOverLimit: -1})
		must(tb, err)
		tb.Cleanup(func() { must(tb, session.Close()) })
		inBackground(tb, func(ctx context.Context) error {
			for {
				_, h, err := rlock.New(session, "hot").Lock(ctx)
				if err != nil {
					return err
				}
				_ = h.Unlock()
			}
		})
	}
	holder := dial(tb, s)
	_, _, err := rlock.New(holder, "stuck").Lock(within(tb))
	must(tb, err)
	_, _, err = fairlock.New(holder, "fair").Lock(within(tb))
	must(tb, err)
	_, _, err = rlock.New(holder, "idle").Lock(within(tb))
	must(tb, err)
	for range 5 { // more than can seem to wait for the hot one, whose channel two sessions listen to for a while
		inBackground(tb, func(ctx context.Context) error { _, _, err := rlock.New(dial(tb, s), "stuck").Lock(ctx); return err })
	}
	for range 6 {
		inBackground(tb, func(ctx context.Context) error { _, _, err := fairlock.New(dial(tb, s), "fair").Lock(ctx); return err })
	}
	eventually(tb, "all waiters", func() bool {
		n, err := fairlock.New(holder, "fair").Waiters(within(tb))
		must(tb, err)
		inLine, err := rlock.New(holder, "stuck").Waiters(within(tb))
		must(tb, err)
		return n == 6 && inLine == 5
	})
}

// top finds the locks that are contended and those whose owners change, and says how much.
func TestTop(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		busy(t, s)
		c := newCLI(t, s)
		last := refreshes(c, "-n", "6", "--interval", "300ms")
		byName := map[string]int{}
		for i, l := range last.Top {
			byName[l.Name] = i
		}
		if len(last.Top) != 4 || last.Locks != 4 {
			t.Fatalf("in view are %+v", last.Top)
		}
		fair, stuck, hot, idle := last.Top[byName["fair"]], last.Top[byName["stuck"]], last.Top[byName["hot"]], last.Top[byName["idle"]]
		if byName["fair"] != 0 || byName["stuck"] != 1 || fair.Line != 6 || !fair.Fair || stuck.Line != 5 || stuck.Waiting != 0 {
			t.Errorf("first are %+v and %+v", last.Top[0], last.Top[1])
		}
		for i := 0; i < 5 && hot.Changes < 1; i++ { // on a busy machine it stands free at many samples
			for _, l := range refreshes(c, "-n", "6", "--interval", "300ms", "hot").Top {
				hot = l
			}
		}
		if hot.Changes < 1 {
			t.Errorf("the owners of %q change %.2f times a second", hot.Name, hot.Changes)
		}
		for _, l := range []float64{fair.Changes, stuck.Changes, idle.Changes, 1 - fair.Held, 1 - stuck.Held, 1 - idle.Held} {
			if l > 0.001 {
				t.Errorf("locks that stay with their owners are %+v, %+v, %+v", fair, stuck, idle)
			}
		}
		if hot := refreshes(c, "-n", "8", "--interval", "300ms", "--sort", "changes").Top[0]; hot.Name != "hot" {
			t.Errorf("by changes, %q is first", hot.Name)
		}
		if !s.IsMini() && last.Scripts < 10 {
			t.Errorf("Redis runs %.1f scripts a second", last.Scripts)
		}
		text := c.want(0, "top", "-n", "2", "--interval", "200ms", "--rows", "1", "f*").out
		if strings.Contains(text, "\x1b") || !strings.Contains(text, "mutex (fair)") || strings.Contains(text, "stuck") {
			t.Errorf("without a terminal top prints %q", text)
		}
	})
}

// However many keys there are, a refresh sends a bounded number of commands, and never KEYS.
// A lock that is waited for is in view although the keys have not all been seen.
func TestTopIsCheap(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	const keys, atOnce, track = 200_000, 10_000, 10
	for from := 0; from < keys; from += atOnce {
		must(t, s.Do(t, "EVAL", `for i = ARGV[1], ARGV[1] + ARGV[2] - 1 do
			redis.call('HSET', 'many:' .. i, 'owner:1', 1) redis.call('PEXPIRE', 'many:' .. i, 600000) end return 1`,
			"0", strconv.Itoa(from), strconv.Itoa(atOnce)).Error())
	}
	if n, err := s.Do(t, "DBSIZE").AsInt64(); err != nil || n != keys {
		t.Fatalf("there are %d keys, %v", n, err)
	}
	quiet := func() *rlock.Session { // what it sends by itself would count
		session, err := rlock.Dial(context.Background(), s.Option(), rlock.Config{Lease: time.Hour, PollFloor: time.Hour})
		must(t, err)
		t.Cleanup(func() { must(t, session.Close()) })
		return session
	}
	holder, waiter := quiet(), quiet()
	_, _, err := rlock.New(holder, "waited").Lock(within(t))
	must(t, err)
	inBackground(t, func(ctx context.Context) error { _, _, err := rlock.New(waiter, "waited").Lock(ctx); return err })
	eventually(t, "a waiter", func() bool { return listeners(t, s, "redisson_lock__channel:{waited}") == 1 })
	s.ResetStats(t)
	last := refreshes(newCLI(t, s), "-n", "3", "--interval", "200ms", "--track", strconv.Itoa(track))
	if len(last.Top) != track || last.Top[0].Name != "waited" || last.Top[0].Line != 1 || last.Top[0].Waiting != 0 {
		t.Errorf("in view are %d, first %+v", len(last.Top), last.Top[0])
	}
	sent := s.Commands(t)
	if n := sent["scan"]; n > 3*10 {
		t.Errorf("%d SCANs in 3 refreshes, want at most 30", n)
	}
	if n := sent["hscan"]; n > 3*4*track {
		t.Errorf("%d looks at a lock in 3 refreshes, want at most %d", n, 3*4*track)
	}
	if sent["keys"]+sent["monitor"] > 0 {
		t.Errorf("top sends %v", sent)
	}
	if n := sent["hgetall"]; n > 3*track { // of the fair queue; the owners of a lock are not read whole
		t.Errorf("%d HGETALLs in 3 refreshes, want at most %d", n, 3*track)
	}
	if last.Commands < 10 {
		t.Errorf("top says that it sends %.1f commands a second", last.Commands)
	}
}

// In a terminal top draws on the second screen, heeds its keys, and gives the terminal back.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	busy(t, s)
	c := newCLI(t, s)
	for key, how := range map[string]string{"q": "q", "\x03": "Ctrl-C"} {
		cmd := exec.Command("sh", "-c", binary+` top --interval 200ms; echo "code $?"; stty -a`)
		cmd.Env = c.command().Env
		term := startTerminal(t, cmd)
		term.until("\x1b[?1049h")
		for _, want := range []string{"by waiting", "WAITING", "fair ", "stuck ", "hot "} {
			term.until(want)
		}
		term.write("s")
		term.until("by changes")
		term.until("hot ")
		term.write("s")
		term.until("by held")
		term.write(key)
		term.until("\x1b[?1049l")
		term.until("code 0")
		term.until(" icanon")
		term.until(" echo ")
		if code := term.wait(); code != 0 {
			t.Errorf("%s: exit code %d", how, code)
		}
	}
}

// A line is as long as the terminal is wide, and a full screen does not scroll.
func TestTopFitsTheScreen(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	session := dial(t, s)
	for i := range 40 { // more than the 24 lines of the terminal
		_, _, err := rlock.New(session, strings.Repeat("long", 40)+strconv.Itoa(i)).Lock(within(t))
		must(t, err)
	}
	term := startTerminal(t, newCLI(t, s).command("top", "--interval", "100ms"))
	term.until("\x1b[H")
	term.until("\x1b[J")
	term.write("q")
	term.wait()
	_, text, _ := strings.Cut(term.text(), "\x1b[H")
	screen, _, _ := strings.Cut(text, "\x1b[J")
	lines := strings.Split(screen, "\r\n")
	if len(lines) != 24 {
		t.Errorf("%d lines on a screen of 24", len(lines))
	}
	for _, l := range lines {
		l = strings.NewReplacer("\x1b[K", "", "\x1b[7m", "", "\x1b[0m", "").Replace(l)
		if n := len([]rune(l)); n > 100 {
			t.Errorf("%d characters on a screen of 100: %q", n, l)
		}
	}
}

// TERM ends top as q does, and wrong flags are refused.
func TestTopEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	c := newCLI(t, s)
	r := c.start("top", "--json", "--interval", "100ms")
	r.line()
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &r.errs)
	}
	for _, args := range []string{"--interval 1ms", "--rows 0", "--track 0", "-n -1", "--sort nothing", "a b"} {
		c.want(64, append([]string{"top"}, strings.Fields(args)...)...)
	}
}
