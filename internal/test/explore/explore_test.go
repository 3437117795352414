package explore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/explore"
	"relock/internal/test/redistest"
)

// states is how many states of a setup a test looks at. The rest is for make explore.
func states() int {
	switch {
	case redistest.Race:
		return 200 // there it takes ten times as long, beside tests whose leases must be renewed in time
	case testing.Short():
		return 2000
	}
	return 5000
}

// Nothing is wrong with the states that are reached first.
func TestExplore(t *testing.T) {
	for _, set := range explore.Setups() {
		t.Run(set.Name, func(t *testing.T) {
			if testing.Short() && !strings.Contains(set.Name, "-2") {
				t.Skip("short")
			}
			r := set.Explore(states(), time.Minute)
			t.Log(r)
			if r.Wrong != "" {
				t.Errorf("%s\n%s", r.Wrong, r.Story)
			}
		})
	}
}

// As long as nothing fails there are few states of two sessions: all are looked at.
func TestExploreWithoutFaults(t *testing.T) {
	for _, set := range explore.Setups() {
		if !strings.HasSuffix(set.Name, "-2") && !strings.HasSuffix(set.Name, "-2-writers") {
			continue
		}
		set = set.WithFaults(0)
		if r := set.Explore(10_000, time.Minute); r.Wrong != "" || !r.Exhausted {
			t.Errorf("%v: %s\n%s", r, r.Wrong, r.Story)
		}
	}
}

// Whatever one fault does to two sessions that lock once, wherever it comes: all states are looked at.
func TestExploreOneFault(t *testing.T) {
	if redistest.Race || testing.Short() {
		t.Skip("140,000 states")
	}
	all := []string{"plain-2", "fair-2", "rw-2", "rw-2-writers", "permits-2", "counter-2", "named-2"}
	for _, set := range explore.Setups() {
		if !slices.Contains(all, set.Name) {
			continue
		}
		if r := set.WithFaults(1).Explore(100_000, time.Minute); r.Wrong != "" || !r.Exhausted {
			t.Errorf("%v: %s\n%s", r, r.Wrong, r.Story)
		}
	}
}

// What is broken on purpose is found: one of each kind here, and all by make explore-mutants.
func TestMutants(t *testing.T) {
	for _, m := range explore.Mutants() {
		if !m.Quick || redistest.Race {
			continue
		}
		r, found := m.Hunt(3000, time.Minute)
		if !found {
			t.Errorf("not found: %s: %v", m.Name, r)
		}
	}
}

// Stories of what was found.
func TestStories(t *testing.T) {
	for _, c := range []struct {
		setup string
		steps []string
	}{
		// The hold is forced while an attempt is on its way that takes the lock anew: once the session hears of the force it
		// releases what it does not know to have.
		{"plain-2", []string{"leisure X 4", "execute X 0", "lose-reply X 0", "own X 0", "force X 0", "execute X 0", "reply X 0", "message X 0"}},
		// What was given is deleted, and a look finds the lock held by another: the message is older than that refusal.
		{"plain-2-again", []string{"leisure X 4", "execute X 0", "reply X 0", "leisure Y 4", "execute Y 0", "reply Y 0", "pass X 0", "own Y 0",
			"leisure X 3", "execute X 0", "delete X 0", "execute Y 0", "reply Y 0", "message Y 0"}},
		// An attempt that enters the line runs twice: it hears both times what is left of the lease.
		{"plain-2", []string{"leisure X 4", "execute X 0", "leisure Y 4", "execute Y 0"}},
		// A session that was passed over looks, and has its old place again.
		{"plain-3", []string{"leisure X 4", "execute X 0", "reply X 0", "leisure Y 4", "execute Y 0", "reply Y 0", "pass X 0", "own Y 0", "leisure X 3",
			"leisure Z 4", "die Y 0", "execute X 0", "execute Z 0", "execute Y 0"}},
		// A late release enters its session anew in the line, which has the lock by then: that is not before another one.
		{"plain-2-again", []string{"leisure X 4", "leisure Y 4", "give-up X 0", "own X 0", "execute X 0", "reply X 0", "leisure X 3",
			"give-up X 0", "execute X 0", "reply X 0", "own X 0", "late X 0", "execute X 0", "reply X 0", "late X 0", "execute Y 0",
			"message X 0", "leisure X 3", "execute X 0"}},
		// A session is asked for what it may keep before it has the answer by which it holds that.
		{"keep-2", []string{"leisure X 4", "execute X 0", "leisure Y 4", "execute Y 0", "message X 0", "reply X 0", "reply Y 0", "leisure X 3"}},
		// A session that may keep the lock is given it while another one stands behind it in the line, which has asked nobody.
		{"keep-3", []string{"leisure X 4", "leisure Y 4", "leisure Z 4", "execute X 0", "execute Y 0", "execute Z 0", "reply X 0", "reply Y 0",
			"reply Z 0", "message X 0", "leisure X 3", "execute X 0", "reply X 0", "message Y 0", "pass X 0", "own Y 2", "execute Y 0",
			"reply Y 0", "leisure Y 3"}},
		// A writer throws out a reader whose lease is over in this very ms, and leaves the timeout key that ends with that.
		{"rw-2", []string{"leisure X 4", "execute X 0", "stop X 0", "pass X 0", "resume X 0", "reply X 0", "own X 0", "leisure Y 4",
			"execute Y 0", "execute X 0", "reply X 0", "reply Y 0", "leisure Y 3", "leisure X 5", "execute Y 0", "reply Y 0"}},
		// A reader whose lease is over in this very ms asks again, is refused for a writer that waits, and is cancelled.
		{"rw-2", []string{"leisure X 4", "execute X 0", "leisure Y 4", "execute Y 0", "reply Y 0", "stop X 0", "pass X 0",
			"own Y 0", "execute Y 0", "reply Y 0", "pass X 0", "own Y 0", "execute Y 0", "reply Y 0", "pass X 0", "own Y 0",
			"execute Y 0", "reply Y 0", "pass X 0", "resume X 0", "reply X 0", "own X 0", "execute X 0", "reply X 0",
			"leisure X 5"}},
	} {
		wrong, err := explore.Replay(c.setup, c.steps)
		if err != nil || wrong != "" {
			t.Errorf("%s %q: %s, %v", c.setup, c.steps, wrong, err)
		}
	}
	if _, err := explore.Replay("plain-2", []string{"reply X 0"}); err == nil {
		t.Error("a step that is not possible was taken")
	}
}
