// The program bench measures this module's locks beside those of other libraries, in one
// run on one machine, and writes what it found: ../docs/performance.md, its pictures, and figures.md.
//
// It starts the servers that it needs: redis-server, which must be on PATH (or its path in
// RELOCK_REDIS_SERVER), etcd, and Java processes with Redisson, for which it needs a JDK and Maven.
// Without the latter two their lines are left out. Times are only worth comparing within a run,
// and on a machine that does nothing else.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"relock/internal/test/benchkit"
)

// config is what the command line says.
type config struct {
	window time.Duration
	rounds int // of the hand-over
	slices int // of the goals' benchmarks
	only   []string
	out    string // the folder of performance.md,
	tables string // and of figures.md
}

func main() {
	benchkit.Child(everyKind()) // does not return in a child process
	var c config
	var only string
	flag.DurationVar(&c.window, "window", 2*time.Second, "for how long each case is measured")
	flag.IntVar(&c.rounds, "rounds", 100, "how many hand-overs are measured")
	flag.IntVar(&c.slices, "slices", 5, "how often the benchmarks of the goals are run; 0: leave them out")
	flag.StringVar(&only, "only", "", "measure only these kinds, by name, separated by commas, and no goals")
	flag.StringVar(&c.out, "out", filepath.Join("..", "docs"), "the folder for performance.md")
	flag.StringVar(&c.tables, "tables", ".", "the folder for figures.md")
	flag.Parse()
	if only != "" {
		c.only, c.slices = strings.Split(only, ","), 0
	}
	if err := run(c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// everyKind is what child processes have to know.
func everyKind() []benchkit.Kind { return append(benchkit.Ours(), peers...) }

// compared are the kinds that can be compared, exclusive locks all: ours first, the one that is no
// distributed lock last.
func compared() []benchkit.Kind {
	ours := []benchkit.Kind{benchkit.Our("rlock"), benchkit.Our("fairlock")}
	return slices.Concat(ours, peers, []benchkit.Kind{redisson, inMemory})
}

func run(c config) (err error) {
	if c.window < 10*time.Millisecond || c.rounds < 1 || c.slices < 0 {
		return errors.New("-window must be at least 10ms, -rounds at least 1, and -slices not negative")
	}
	for _, name := range c.only {
		if _, ok := benchkit.Find(append(everyKind(), compared()...), name); !ok {
			return fmt.Errorf("-only: there is no kind %q", name)
		}
	}
	h := newHost()
	defer h.close(&err)
	began := time.Now()
	report := measureAll(context.Background(), h, c)
	report.measureGoals(h, c.slices)
	report.Took = time.Since(began).Round(time.Second)
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return err
	}
	if err := pictures(report, c.out); err != nil {
		return err
	}
	return documents(report, c.out, c.tables)
}

// wanted says whether the kind is to be measured.
func (c config) wanted(k benchkit.Kind) bool { return c.only == nil || slices.Contains(c.only, k.Name) }
