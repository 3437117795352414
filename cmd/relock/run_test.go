package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An exit is how a call ends. The arguments of "sh -c" have colons for blanks.
type exit struct {
	code int
	args string
}

// exits has each way in which run ends, beside a lock "taken" and a list "list".
var exits = []exit{
	{0, "run x -- true"},
	{3, "run x -- sh -c exit:3"},
	{128 + 15, "run x -- sh -c kill:-TERM:$$"},
	{75, "run --try taken -- true"},
	{75, "run --wait 3s taken -- true"}, // within which a busy machine answers: else it is 69
	{75, "run --wait 0 taken -- true"},
	{75, "run --fair --try taken -- true"},
	{7, "run --try --conflict-exit-code 7 taken -- true"},
	{70, "run --try --conflict-exit-code 7 list -- true"},
	{3, "run --conflict-exit-code 7 x -- sh -c exit:3"},
	{64, "run --conflict-exit-code 256 x -- true"},
	{64, "run --conflict-exit-code -1 x -- true"},
	{70, "run list -- true"},
	{127, "run x -- relock-has-no-such-command"},
	{64, "run x true"},
	{64, "run -- true"},
	{64, "run x y -- true"},
	{64, "run x --"},
	{64, "run --no-such-flag x -- true"},
	{64, "run --try --wait 1s x -- true"},
	{64, "run --wait -1s x -- true"},
	{64, "run --wait soon x -- true"},
	{64, "run --grace -1s x -- true"},
	{64, "run --lease 0 x -- true"},
	{64, "run --lease 0s --abandon x -- true"},
	{64, "run --lease -1s x -- true"},
	{64, "run --lease 0.5us x -- true"},
	{64, "run --lease -1s --abandon x -- true"},
	{64, "run --read --write x -- true"},
	{64, "run --fenced --read x -- true"},
	{64, "run --permits 1 x -- true"},
	{64, "run --limit 1 x -- true"},
	{64, "run --permits 0 --limit 1 x -- true"},
	{64, "run --permits 3 --limit 2 x -- true"},
	{64, "run --permits 1 --limit 2 --abandon x -- true"},
	{64, "run --label " + strings.Repeat("x", 201) + " x -- true"},
	{64, "--redis nonsense run x -- true"},
	{64, "--redis redis://127.0.0.1:1?mastr_set=x run x -- true"},
	{64, "no-such-command"},
	{69, "--redis redis://127.0.0.1:1 run x -- true"},
}

// Each way in which run ends has its exit code.
func TestRunExitCodes(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		_, h, err := rlock.New(dial(t, s), "taken").Lock(within(t))
		must(t, err)
		must(t, s.Do(t, "RPUSH", "list", "1").Error())
		text := filepath.Join(t.TempDir(), "text")
		must(t, os.WriteFile(text, []byte("no program"), 0o600))
		for _, e := range append(exits, exit{126, "run x -- " + text}) {
			args := strings.Fields(e.args)
			for i := range args {
				if i > 0 && args[i-1] == "-c" {
					args[i] = strings.ReplaceAll(args[i], ":", " ")
				}
			}
			r := c.run(args...)
			if r.code != e.code {
				t.Errorf("relock %s: exit code %d, want %d\n%s", e.args, r.code, e.code, r.err)
			}
			if e.code >= 64 && e.code < 128 && !strings.HasPrefix(r.err, "relock: ") {
				t.Errorf("relock %s says nothing: %q", e.args, r.err)
			}
		}
		r := c.want(75, "--json", "run", "--try", "taken", "--", "true")
		if !strings.Contains(r.err, `"exit":75`) || r.out != "" {
			t.Errorf("the error is no JSON: %q, %q", r.err, r.out)
		}
		if r := c.want(0, "run", "--try", "--conflict-exit-code", "0", "taken", "--", "echo", "ran"); r.out+r.err != "" {
			t.Errorf("with --conflict-exit-code 0 the refused run says %q, %q", r.out, r.err)
		}
		r = c.want(0, "--json", "run", "--try", "--conflict-exit-code", "0", "taken", "--", "true")
		if !strings.Contains(r.err, `"event":"refused"`) || !strings.Contains(r.err, "not acquired") {
			t.Errorf("with --json the refused run says %q", r.err)
		}
		must(t, h.Unlock())
		odd := "a\x1b[31m b" // which would control the terminal, and is no single word for a shell
		_, h, err = rlock.New(dial(t, s), odd).Lock(within(t))
		must(t, err)
		if r := c.want(75, "run", "--try", odd, "--", "true"); strings.Contains(r.err, "\x1b") || !strings.Contains(r.err, "relock show") {
			t.Errorf("of a name that is no text it says %q", r.err)
		}
		must(t, h.Unlock())
		if keys := s.Keys(t); strings.Join(keys, " ") != "list" {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// A password does not show in an error or in the help.
func TestPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	c := cli{t, "redis://user:hunter2@[bad"}
	for _, args := range [][]string{{"ls"}, {"run", "--help"}, {"run", "x", "--", "true"}} {
		if r := c.run(args...); strings.Contains(r.out+r.err, "hunter2") {
			t.Errorf("relock %q shows the password: %s%s", args, r.out, r.err)
		}
	}
}

// The lock is held for as long as the command runs, and no longer.
func TestRunHoldsTheLock(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, g := newCLI(t, s), newGate(t)
		r := c.start(append([]string{"run", "x"}, g.behind("exit 4")...)...)
		r.expect("in")
		c.want(75, "run", "--try", "x", "--", "true")
		waiter := c.start("run", "--wait", "1m", "x", "--", "echo", "next")
		g.open(t)
		if code := r.wait(); code != 4 {
			t.Errorf("exit code %d, want 4", code)
		}
		waiter.expect("next")
		if code := waiter.wait(); code != 0 {
			t.Errorf("the waiter's exit code is %d", code)
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// Each kind of lock lets in what it should beside a holder of another.
func TestRunKinds(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		for i, e := range []struct {
			holder, other string
			code          int
		}{
			{"", "--fair", 75},
			{"--fair", "", 75},
			{"--fenced", "", 75},
			{"--read", "--read", 0},
			{"--read", "--write", 75},
			{"--write", "--read", 75},
			{"--permits 1 --limit 2", "--permits 1 --limit 2", 0},
			{"--permits 2 --limit 2", "--permits 1 --limit 2", 75},
			{"--permits 1 --limit 2", "--permits 2 --limit 2", 75},
		} {
			g, name := newGate(t), "lock"+strconv.Itoa(i)
			holder := append(append([]string{"run"}, strings.Fields(e.holder)...), name)
			r := c.start(append(holder, g.behind("")...)...)
			r.expect("in")
			other := append(append([]string{"run", "--try"}, strings.Fields(e.other)...), name, "--", "true")
			if got := c.run(other...); got.code != e.code {
				t.Errorf("%q beside %q: exit code %d, want %d\n%s", e.other, e.holder, got.code, e.code, got.err)
			}
			g.open(t)
			if code := r.wait(); code != 0 {
				t.Errorf("%q: exit code %d\n%s", e.holder, code, &r.errs)
			}
		}
	})
}

// The command finds its lock in its environment, and a token that grows.
func TestRunEnvironment(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, last := newCLI(t, s), 0
		print := []string{"--", "sh", "-c", "echo $RELOCK_NAME/$RELOCK_OWNER/$RELOCK_TOKEN"}
		for _, kind := range []string{"--fenced", "--fair --fenced", "--fenced"} {
			r := c.want(0, append(append([]string{"run"}, append(strings.Fields(kind), "x")...), print...)...)
			got := strings.Split(strings.TrimSpace(r.out), "/")
			token, err := strconv.Atoi(got[2])
			if got[0] != "x" || !strings.HasSuffix(got[1], ":1") || err != nil || token <= last {
				t.Errorf("%s: %q after token %d", kind, got, last)
			}
			last = token
		}
		if r := c.want(0, append([]string{"run", "y"}, print...)...); !strings.HasSuffix(strings.TrimSpace(r.out), "/") {
			t.Errorf("a token without --fenced: %q", r.out)
		}
	})
}

// A run inside a run has its command find its own lock alone.
func TestRunEnvironmentOfANestedRun(t *testing.T) {
	t.Parallel()
	r := newCLI(t, redistest.Mini(t)).want(0, "run", "--fenced", "outer", "--", binary, "run", "inner", "--", "env")
	var names []string
	for line := range strings.Lines(r.out) {
		if name, ok := strings.CutPrefix(line, "RELOCK_NAME="); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if !slices.Equal(names, []string{"inner"}) || strings.Contains(r.out, "RELOCK_TOKEN=") || strings.Count(r.out, "RELOCK_OWNER=") != 1 {
		t.Errorf("the command of inner has the names %q in\n%s", names, r.out)
	}
}

// With --fair the commands run in the order in which they began to wait.
func TestRunFairOrder(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session := newCLI(t, s), dial(t, s)
		m := fairlock.New(session, "x")
		_, h, err := m.Lock(within(t))
		must(t, err)
		order := filepath.Join(t.TempDir(), "order")
		const waiters = 4
		var all []*running
		for i := range waiters {
			all = append(all, c.start("run", "--fair", "x", "--", "sh", "-c", "echo "+strconv.Itoa(i)+" >>"+order))
			eventually(t, "a waiter in the queue", func() bool {
				n, err := m.Waiters(within(t))
				must(t, err)
				return n == i+1
			})
		}
		must(t, h.Unlock())
		for _, r := range all {
			if code := r.wait(); code != 0 {
				t.Errorf("exit code %d\n%s", code, &r.errs)
			}
		}
		text, err := os.ReadFile(order)
		must(t, err)
		if string(text) != "0\n1\n2\n3\n" {
			t.Errorf("the order is %q", text)
		}
	})
}

// A Redis that is gone while the command waits for the lock is "unavailable", not "not
// acquired".
func TestRunRedisGoesAway(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	c := newCLI(t, s)
	m := rlock.New(dial(t, s), "x")
	_, h, err := m.Lock(within(t))
	must(t, err)
	r := c.start("run", "--wait", "3s", "x", "--", "true")
	eventually(t, "a waiter", func() bool {
		n, err := s.Do(t, "PUBSUB", "NUMSUB", "redisson_lock__channel:{x}").ToArray()
		must(t, err)
		count, _ := n[1].AsInt64()
		return count == 1
	})
	s.Kill()
	if code := r.wait(); code != 69 {
		t.Errorf("exit code %d, want 69\n%s", code, &r.errs)
	}
	s.Restart(t)
	_ = h.Unlock()
}

// With --verbose and with --json run says what it does, on standard error.
func TestRunReports(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		r := c.want(2, "--json", "run", "--fenced", "x", "--", "sh", "-c", "echo out; exit 2")
		for _, want := range []string{`"event":"acquired"`, `"token":1`, `"event":"ended"`, `"exit":2`} {
			if !strings.Contains(r.err, want) {
				t.Errorf("no %s in %s", want, r.err)
			}
		}
		if r.out != "out\n" {
			t.Errorf("standard output is %q", r.out)
		}
		if r := c.want(0, "run", "-v", "x", "--", "true"); !strings.Contains(r.err, "relock: x: acquired") {
			t.Errorf("--verbose says %q", r.err)
		}
		if r := c.want(0, "run", "x", "--", "true"); r.err != "" {
			t.Errorf("without --verbose it says %q", r.err)
		}
	})
}
