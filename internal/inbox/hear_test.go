package inbox_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"relock/internal/inbox"
	"relock/pubsub"
)

// Each message reaches the one whom it concerns, and what makes no sense the Logger.
func TestHear(t *testing.T) {
	var heard []string
	add := func(what ...string) { heard = append(heard, strings.Join(what, " ")) }
	log := &strings.Builder{}
	h := &inbox.Handlers{
		Missed: func() { add("missed") },
		Line: func(m string) bool {
			if strings.HasPrefix(m, "grant:") {
				add(m)
				return true
			}
			return false
		},
		Deadlock: func(m string) error {
			add(m)
			if m == "deadlock:bad" {
				return errors.New("no such message")
			}
			return nil
		},
		Revoked: func(owner, key string) { add("revoked", owner, key) },
		Wanted:  func(owner, key string) { add("wanted", owner, key) },
		Log:     slog.New(slog.NewTextHandler(log, nil)),
	}
	for _, c := range []struct {
		m         pubsub.Message
		want, log string // "" for nothing
	}{
		{pubsub.Message{Missed: true, Payload: "grant:1"}, "missed", ""},
		{pubsub.Message{Payload: inbox.Question}, "", ""},
		{pubsub.Message{Payload: "grant:1"}, "grant:1", ""},
		{pubsub.Message{Payload: "deadlock:1"}, "deadlock:1", ""},
		{pubsub.Message{Payload: "deadlock:bad"}, "deadlock:bad", "no such message"},
		{pubsub.Message{Payload: inbox.Note{Kind: inbox.Lost, Owner: "a:1", Key: "x:y"}.String()}, "revoked a:1 x:y", ""},
		{pubsub.Message{Payload: inbox.Note{Kind: inbox.Wanted, Owner: "a:1", Key: "x:y"}.String()}, "wanted a:1 x:y", ""},
		{pubsub.Message{Payload: "nonsense"}, "", "payload=nonsense"},
	} {
		heard = nil
		log.Reset()
		h.Hear(c.m)
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if !slices.Equal(heard, want) {
			t.Errorf("%+v: heard %q, want %q", c.m, heard, want)
		}
		if got := log.String(); got != "" && c.log == "" || !strings.Contains(got, c.log) {
			t.Errorf("%+v: logged %q, want %q", c.m, got, c.log)
		}
	}
}
