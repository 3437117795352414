package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A suite is benchmarks that are run together.
type suite struct {
	dir       string // of their package, as seen from this one
	pattern   string
	benchtime string
}

var (
	aloneSuite    = suite{".", "Alone", "10x"} // 2 s each: the rate of one who is alone varies most
	insideSuite   = suite{"..", "InsideRedis", "10000x"}
	ownSuite      = suite{"..", "OwnLocks", "1s"}
	oneSuite      = suite{"..", "OneLock/fairlock/64", "1s"}
	fourSuite     = suite{"..", "Processes/fairlock/4x16/0s", "1s"}
	permitsSuite  = suite{"..", "Permits", "1s"}
	handOverSuite = suite{"..", "HandOver$", "1s"}
	sessionsSuite = suite{"..", "Sessions/.*/n=(4|128|512)$/section=0s", "1x"} // of 2 s each, as the next three
	sectionsSuite = suite{"..", "Sessions/.*/n=(32|64)$/section=5ms", "1x"}
	farSuite      = suite{"..", "HandOverFar/.*/trip=3ms", "1x"}
	slowSuite     = suite{"..", "SlowProcess/rlock", "1x"}
	keptSuite     = suite{".", "Kept", "5x"}
	keepSuite     = suite{"..", "Keep", "1s"}
	asyncSuite    = suite{"..", "Async/1ms/rlock", "5x"}

	suites = []suite{
		aloneSuite, insideSuite, ownSuite, oneSuite, fourSuite, permitsSuite, handOverSuite,
		sessionsSuite, sectionsSuite, farSuite, slowSuite, keptSuite, keepSuite, asyncSuite,
	}
)

// bench is how the page names the suite: what -bench is given, in bench or at the top.
func (s suite) bench() string {
	if s.dir == "." {
		return "bench: " + s.pattern
	}
	return s.pattern
}

// A goal is a bound for a figure that a benchmark reports.
type goal struct {
	what   string
	bound  float64
	atMost bool // else at least
	suite  suite
	name   string // of the benchmark in the suite, behind its first name; "" for that alone
	unit   string
	per    string // the unit of what it is divided by, of the same benchmark or "name unit"; "": nothing
}

// fairBefore is what fairlock did under contention when its queue in Redis held each waiter alone,
// as a part of the floor.
const fairBefore = 0.34

var goals = append([]goal{
	{"alone: rlock, of redsync's rate", 1.0, false, aloneSuite, "", "rlock/s", "redsync/s"},
	{"alone: rlock, of redsync's server CPU", 1.3, true, aloneSuite, "", "rlock-server-µs", "redsync-server-µs"},
	{"alone: fairlock, of rlock's rate", 0.8, false, aloneSuite, "", "fairlock/s", "rlock/s"},
	{"inside Redis: a lock, of Redisson's scripts", 0.75, true, insideSuite, "plain", "ours-µs", "redisson-µs"},
	{"inside Redis: a fair lock, of Redisson's", 1.0, true, insideSuite, "fair", "ours-µs", "redisson-µs"},
	{"inside Redis: a permit, of Redisson's", 1.1, true, insideSuite, "semaphore", "ours-µs", "redisson-µs"},
	{"inside Redis: a permit, and another is out", 1.1, true, insideSuite, "semaphore-another-out", "ours-µs", "redisson-µs"},
	{"inside Redis: a read lock, of Redisson's", 1.0, true, insideSuite, "read", "ours-µs", "redisson-µs"},
	{"inside Redis: a write lock, of Redisson's", 1.0, true, insideSuite, "write", "ours-µs", "redisson-µs"},
	{"fairlock, 64 goroutines: of the floor", 15 * fairBefore, false, oneSuite, "fairlock/64", "ops/s", "floor/s"},
	{"fairlock, 4 processes of 16: of the floor", 4 * fairBefore, false, fourSuite, "fairlock/4x16/0s", "ops/s", "floor/s"},
	{"fairlock, 4 processes of 16: µs of server CPU", 30, true, fourSuite, "fairlock/4x16/0s", "server-µs/op", ""},
	{"64 locks at once: rlock, of the ceiling", 0.6, false, ownSuite, "rlock", "ops/s", "ceiling/s"},
	{"64 locks at once: semaphore, of the ceiling", 0.45, false, ownSuite, "semaphore", "ops/s", "ceiling/s"},
	{"64 locks at once: read lock, of the ceiling", 0.45, false, ownSuite, "rwlock-read", "ops/s", "ceiling/s"},
	{"64 locks at once: fairlock, of the ceiling", 0.4, false, ownSuite, "fairlock", "ops/s", "ceiling/s"},
	{"hand-over after idleness: rlock, in round trips", 2.3, true, handOverSuite, "rlock", "µs-p50", "µs-round-trip"},
	{"hand-over after idleness: fairlock, in round trips", 1.9, true, handOverSuite, "fairlock", "µs-p50", "µs-round-trip"},
	{"semaphore, 64 goroutines on 8 permits: of the floor", 10, false, permitsSuite, "", "ops/s", "floor/s"},
	{"Keep, one goroutine alone: of x/sync's rate", 0.4, false, keptSuite, "", "x-memory", ""},
	{"Keep, one goroutine alone: of the floor", 100, false, keepSuite, "one_name", "x-floor", ""},
	{"Keep, asked back: of a hand-over between two sessions", 2.2, true, keepSuite, "asked_back", "x-hand-over", ""},
	{"Keep, two sessions in turns: of the time without Keep", 1.1, true, keepSuite, "in_turns", "x-without", ""},
	{"UnlockAsync, 1 ms away, alone: of the cycles with Unlock", 1.7, false, asyncSuite, "1ms/rlock", "x-cycles", ""},
}, goalsOfSessions()...)

// goalsOfSessions say that what a release costs does not depend on how many sessions wait.
func goalsOfSessions() (all []goal) {
	for _, kind := range []string{"rlock", "fairlock"} {
		in := func(n int) string { return fmt.Sprintf("%s/n=%d/section=0s", kind, n) }
		for _, n := range []int{4, 128, 512} {
			all = append(all, // 16 commands, and what clears up once in a thousand times
				goal{fmt.Sprintf("%d sessions: %s, of one session's rate", n, kind), 0.4, false, sessionsSuite, in(n), "x-alone", ""},
				goal{fmt.Sprintf("%d sessions: %s, commands that its scripts call", n, kind), 16.1, true, sessionsSuite, in(n), "inner/acq", ""})
		}
		all = append(all,
			goal{fmt.Sprintf("512 sessions: %s, of the rate of 4", kind), 0.7, false, sessionsSuite, in(512), "acq/s", "Sessions/" + in(4) + " acq/s"},
			goal{fmt.Sprintf("128 sessions: %s, Jain's index", kind), 0.99, false, sessionsSuite, in(128), "jain", ""},
			goal{fmt.Sprintf("128 sessions: %s, %% of them that were let in", kind), 100, false, sessionsSuite, in(128), "%-served", ""},
			goal{fmt.Sprintf("128 sessions: %s, 99 %% wait, in turns of all", kind), 3, true, sessionsSuite, in(128), "p99-turns", ""},
			goal{fmt.Sprintf("32 sessions, 5 ms inside: %s, %% of the time somebody is", kind), 85, false, sectionsSuite, kind + "/n=32/section=5ms", "%-inside", ""})
		for _, n := range []int{2, 4, 16} {
			all = append(all, goal{fmt.Sprintf("%d sessions, 3 ms away: %s, in round trips", n, kind), 1.3, true, farSuite,
				fmt.Sprintf("%s/trip=3ms/n=%d", kind, n), "round-trips", ""})
		}
	}
	in := func(kind string, n int) string { return fmt.Sprintf("%s/n=%d/section=0s", kind, n) }
	for _, n := range []int{4, 128, 512} {
		plain := "Sessions/" + in("rlock", n) + " acq/s"
		all = append(all,
			goal{fmt.Sprintf("%d sessions: write lock, of rlock's rate", n), 0.85, false, sessionsSuite, in("rwlock-write", n), "acq/s", plain},
			goal{fmt.Sprintf("%d sessions: 4 permits, of rlock's rate", n), 2, false, sessionsSuite, in("semaphore", n), "acq/s", plain},
			goal{fmt.Sprintf("%d sessions: 4 permits, commands that its scripts call", n), 20, true, sessionsSuite, in("semaphore", n), "inner/acq", ""})
	}
	// Of 4 sessions none waits for one of 4 permits: so 128 are compared.
	all = append(all,
		goal{"512 sessions: write lock, of the rate of 4", 0.7, false, sessionsSuite, in("rwlock-write", 512), "acq/s", "Sessions/" + in("rwlock-write", 4) + " acq/s"},
		goal{"512 sessions: 4 permits, of the rate of 128", 0.7, false, sessionsSuite, in("semaphore", 512), "acq/s", "Sessions/" + in("semaphore", 128) + " acq/s"})
	return append(all, goal{"one of 16 processes runs for 10 of 100 ms: rlock, the rate of the others, of that beside a free one",
		0.7, false, slowSuite, "rlock", "x-free", ""})
}

// Measured is a goal with what the slices gave: the best of them, which decides, and the median. Both
// are NaN if nothing was measured.
type Measured struct {
	goal
	Best, Median float64
}

func (m Measured) met() bool {
	if m.atMost {
		return m.Best <= m.bound
	}
	return m.Best >= m.bound
}

// measureGoals runs all suites in turns, so many times.
func (r *Report) measureGoals(h *host, n int) {
	if r.Slices = n; n == 0 {
		return
	}
	slices := make([]figures, n)
	programs := map[string]string{}
	for i := range slices {
		slices[i] = figures{}
		for _, s := range suites {
			if programs[s.dir] == "" {
				programs[s.dir] = filepath.Join(h.TempDir(), "goals.test")
				if out, err := runIn(s.dir, "go", "test", "-c", "-o", programs[s.dir], "."); err != nil {
					h.Fatalf("go test -c: %v\n%s", err, out)
				}
			}
			fmt.Fprintf(os.Stderr, "goals, slice %d: %s\n", i+1, s.pattern)
			out, err := runIn(s.dir, programs[s.dir], "-test.run", "^$", "-test.bench", s.pattern, "-test.benchtime", s.benchtime)
			if err != nil {
				r.note("%s: %v.", s.pattern, err)
			}
			slices[i].read(out)
		}
	}
	for _, g := range goals {
		r.Goals = append(r.Goals, g.judge(slices))
	}
}

func runIn(dir, program string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// judge says what the slices gave for the goal.
func (g goal) judge(all []figures) Measured {
	var got []float64
	for _, f := range all {
		if v, ok := f.of(g); ok {
			got = append(got, v)
		}
	}
	if len(got) == 0 {
		return Measured{g, math.NaN(), math.NaN()}
	}
	slices.Sort(got)
	m := Measured{g, got[len(got)-1], (got[(len(got)-1)/2] + got[len(got)/2]) / 2}
	if g.atMost {
		m.Best = got[0]
	}
	return m
}

// figures are what the benchmarks of one slice have reported, by "name unit".
type figures map[string]float64

// read takes in what go test has printed.
func (f figures) read(out []byte) {
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				break
			}
			f[name+" "+fields[i+1]] = v
		}
	}
}

// of returns the figure for the goal, if it was measured: what is divided was measured in the same
// slice, for the speed of a machine changes from one to the next.
func (f figures) of(g goal) (v float64, ok bool) {
	name, _, _ := strings.Cut(g.suite.pattern, "/")
	name = strings.TrimSuffix(name, "$")
	if g.name != "" {
		name += "/" + g.name
	}
	v, ok = f[name+" "+g.unit]
	if !ok || g.per == "" {
		return v, ok
	}
	other := name + " " + g.per
	if strings.Contains(g.per, " ") {
		other = g.per
	}
	per := f[other]
	return v / per, per != 0
}

// ofSessions reports whether the goal is about how many sessions wait: those stand on the page of figures.
func (m Measured) ofSessions() bool {
	return slices.Contains([]suite{sessionsSuite, sectionsSuite, farSuite, slowSuite}, m.suite)
}

// mainGoals is the table of the goals that are not about sessions, sessionGoals that of the others.
func mainGoals(all []Measured) string {
	return goalTable(slices.DeleteFunc(slices.Clone(all), Measured.ofSessions))
}

func sessionGoals(all []Measured) string {
	return goalTable(slices.DeleteFunc(slices.Clone(all), func(m Measured) bool { return !m.ofSessions() }))
}

// goalTable is what should be, what is, and how to see for oneself.
func goalTable(all []Measured) string {
	var t table
	t.add("", "goal", "best", "median", "benchmark")
	for _, m := range all {
		bound := "≥ "
		if m.atMost {
			bound = "≤ "
		}
		best, median := nothing, nothing
		if !math.IsNaN(m.Best) {
			best, median = "**"+part(m.Best)+"**", part(m.Median)
			if !m.met() {
				best = part(m.Best) + ", missed"
			}
		}
		t.add(m.what, bound+fmt.Sprintf("%.3g", m.bound), best, median, "`"+strings.ReplaceAll(m.suite.bench(), "|", `\|`)+"`")
	}
	return t.String()
}
