package fairlock_test

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"relock/fairlock"
	"relock/internal/test/modeltest"
	"relock/rlock"
)

// Random operations on one fair mutex, by named and nameless owners in three processes
// that come and go, against a model: who is in, how deep, until when, who is next, and
// what each call may return.
func TestRandomAgainstModel(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, modeltest.Config{Seeds: 8}, func(w *modeltest.World) modeltest.Model {
		return modeltest.NewMutex(w, mutexKind())
	})
}

// The same with fencing tokens, and with more who wait.
func TestRandomAgainstModelFenced(t *testing.T) {
	t.Parallel()
	found := []uint64{
		4072148029322637960, // a nested lock is renewed until the fixed lease around it ends, between two looks of the model
	}
	modeltest.Run(t, modeltest.Config{Seeds: 3, Actors: 6, Found: found}, func(w *modeltest.World) modeltest.Model {
		return modeltest.NewMutex(w, mutexKind(rlock.Fenced()))
	})
}

func mutexKind(opts ...rlock.MutexOption) modeltest.MutexKind {
	return modeltest.MutexKind{
		Key:     "model",
		Fenced:  len(opts) > 0,
		Fair:    true,
		Queue:   queueOf,
		Helpers: []string{"relock_line1:{model}"},
		Ids:     "relock_holds:{model}",
		New:     func(s *rlock.Session) modeltest.Locker { return fairlock.New(s, "model", opts...) },
	}
}

// queueOf takes the line in Redis apart, see line.lua: a place for each waiter of an entry.
func queueOf(m *miniredis.Miniredis) (places []modeltest.Place) {
	const passed, waiting = 2.4e15, 8.6e15
	const line = "relock_line1:{model}"
	members, _ := m.ZMembers(line)
	scores := map[string]float64{}
	var entries []string
	for _, member := range members {
		score, _ := m.ZScore(line, member)
		scores[member] = score
		if strings.Contains("defhi", member[:1]) && score < 2*passed {
			entries = append(entries, member)
		}
	}
	position := func(entry string) float64 { // one that was passed over comes back to its own
		if score := scores[entry]; score >= passed {
			return score - passed
		}
		return scores[entry]
	}
	slices.SortFunc(entries, func(a, b string) int { return cmp.Compare(position(a), position(b)) })
	for _, entry := range entries {
		length, _ := strconv.Atoi(entry[15:20])
		p := modeltest.Place{Session: entry[20 : 20+length], Owner: entry[20:], Known: true, Shares: entry[0] == 'f'}
		if entry[0] == 'i' {
			p.Owner = entry[20+length+32:]
		}
		for range max(1, int(scores["w"+entry]-waiting)) {
			places = append(places, p)
		}
	}
	return places
}
