// Command run explores what can happen to sessions: see package explore. It is what make explore and make
// explore-mutants run.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"relock/internal/test/explore"
)

func main() {
	most := flag.Int("states", 1_300_000, "how many states of each setup are to be known, unless there are fewer")
	limit := flag.Duration("limit", time.Hour, "for how long a setup is explored at most")
	only := flag.String("only", "", "setups, or mutants, whose names contain this text")
	faults := flag.Int("faults", -1, "how many faults may happen in a setup, at most as many as it says; below 0: as many")
	mutants := flag.Bool("mutants", false, "break the scripts and the model on purpose, and see whether that is found")
	flag.Parse()
	debug.SetGCPercent(300)
	failed := false
	if *mutants {
		for _, m := range explore.Mutants() {
			if strings.Contains(m.Name, *only) {
				failed = hunt(m, *most, *limit) || failed
			}
		}
	} else {
		for _, set := range explore.Setups() {
			if strings.Contains(set.Name, *only) {
				if *faults >= 0 {
					set = set.WithFaults(*faults)
				}
				failed = run(set, *most, *limit) || failed
			}
		}
	}
	if failed {
		os.Exit(1)
	}
}

// run explores a setup, and reports whether something is wrong.
func run(set *explore.Setup, most int, limit time.Duration) bool {
	r := set.Explore(most, limit)
	fmt.Println(r)
	if r.Wrong != "" {
		fmt.Printf("%s\n%s\n", r.Wrong, r.Story)
	}
	return r.Wrong != ""
}

// hunt reports whether a mutant was not found.
func hunt(m *explore.Mutant, most int, limit time.Duration) bool {
	r, found := m.Hunt(most, limit)
	if !found {
		fmt.Printf("NOT FOUND: %s: %v\n", m.Name, r)
		return true
	}
	wrong, _, _ := strings.Cut(r.Wrong, "; from")
	fmt.Printf("found: %s, in %s among %d states (%v): %s\n", m.Name, r.Name, r.States, r.Time.Round(time.Millisecond), wrong)
	return false
}
