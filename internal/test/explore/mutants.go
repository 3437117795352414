package explore

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// A flaw is what is wrong with a model on purpose.
type flaw uint32

const (
	trustsFromReply flaw = 1 << iota // counts trust from when the answer came
	noMargin
	trustsFullLease // of what was given, as if that were of a full lease
	trustsTold      // a message that is older than a refusal
	forgetsRenewal
	ignoresLoss // a renewal that says that the hold is gone
	forgetsTold // a message that comes before the answer
	neverLooks
	leavesEntry
	neverListens
	ignoresWanted // what it keeps is wanted
	forgetsWanted // it is inside, and is asked
	reusesLate    // it opens a section on what it keeps and trusts no more, instead of giving it back
	unlocksLate   // its section goes on until the release was answered
)

func (f flaw) has(g flaw) bool { return f&g != 0 }

// A Mutant is something that is wrong on purpose: with scripts, or with the model.
type Mutant struct {
	Name     string
	Quick    bool     // found among a few thousand states
	setups   []string // that are to find it
	old, new string   // in scripts
	flaw     flaw
	sources  sync.Map // by the source as it is
}

// of returns the source of a script as the mutant has it.
func (m *Mutant) of(src string) string {
	if m.old == "" {
		return src
	}
	changed, ok := m.sources.Load(src)
	if !ok {
		changed, _ = m.sources.LoadOrStore(src, strings.ReplaceAll(src, m.old, m.new))
	}
	return changed.(string)
}

// Mutants are all that there are.
func Mutants() []*Mutant {
	return slices.Concat(plainMutants(), fairMutants(), permitMutants(), rwMutants(), javaMutants(),
		holdMutants(), counterMutants(), keepMutants(), modelMutants())
}

// Hunt explores the setups of a mutant, with no fault first, and then with more. It returns what was found, and whether
// that is something; a text that stands in no script any more finds nothing.
func (m *Mutant) Hunt(most int, limit time.Duration) (r Report, found bool) {
	for _, name := range m.setups {
		set, err := setupOf(name)
		if err != nil {
			return Report{Wrong: err.Error()}, false
		}
		set.mutant = m
		for n := range set.faults + 1 {
			set.faults = n
			if r = set.Explore(most, limit); r.Wrong != "" {
				return r, m.applied()
			}
		}
	}
	return r, false
}

// applied reports whether the mutant has changed a script that was run.
func (m *Mutant) applied() bool {
	changed := m.old == ""
	m.sources.Range(func(from, to any) bool {
		changed = changed || from != to
		return !changed
	})
	return changed
}
