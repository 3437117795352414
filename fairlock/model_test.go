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
		Helpers: []string{"relock_queue:{model}", "relock_heartbeats:{model}"},
		Ids:     "relock_holds:{model}",
		New:     func(s *rlock.Session) modeltest.Locker { return fairlock.New(s, "model", opts...) },
	}
}

// queueOf takes the places in Redis apart: a flag and a time, two texts with their lengths
// in front, and an id.
func queueOf(m *miniredis.Miniredis) (places []modeltest.Place) {
	members, _ := m.ZMembers("relock_queue:{model}")
	for _, s := range members {
		_, rest, _ := strings.Cut(s, ";")
		session, rest := cut(rest)
		owner, _ := cut(rest)
		places = append(places, modeltest.Place{Session: session, Owner: owner})
	}
	return places
}

func cut(s string) (text, rest string) {
	length, rest, _ := strings.Cut(s, ":")
	n, _ := strconv.Atoi(length)
	return rest[:n], rest[n:]
}
