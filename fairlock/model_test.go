package fairlock_test

import (
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
	modeltest.Run(t, modeltest.Config{Seeds: 3, Actors: 6}, func(w *modeltest.World) modeltest.Model {
		return modeltest.NewMutex(w, mutexKind(rlock.Fenced()))
	})
}

func mutexKind(opts ...rlock.MutexOption) modeltest.MutexKind {
	return modeltest.MutexKind{
		Key:     "model",
		Fenced:  len(opts) > 0,
		Fair:    true,
		Queue:   queueOf,
		Helpers: []string{"relock_queue:{model}", "relock_waiters:{model}"},
		Ids:     "relock_holds:{model}",
		New:     func(s *rlock.Session) modeltest.Locker { return fairlock.New(s, "model", opts...) },
	}
}

// queueOf takes the entries in Redis apart, see lua/grant.lua: a place for each waiter of a run.
func queueOf(m *miniredis.Miniredis) (places []modeltest.Place) {
	members, _ := m.ZMembers("relock_queue:{model}")
	for _, entry := range members {
		length, _ := strconv.Atoi(entry[:5])
		session, rest := entry[5:5+length], entry[5+length:]
		owner := session + rest
		if strings.HasPrefix(rest, "#") {
			owner = rest[1+32:]
		}
		n, p := 1, modeltest.Place{Session: session, Owner: owner}
		if run := m.HGet("relock_waiters:{model}", entry); run != "" { // else it was deleted
			n, _ = strconv.Atoi(run[3:13])
			p.Known, p.Shares = true, run[0] == 'o'
		}
		for range n {
			places = append(places, p)
		}
	}
	return places
}
