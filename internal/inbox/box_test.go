package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/inbox"
	"relock/internal/life"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// boxed runs fn with a box whose session's life ends with end, on a made-up clock. Subscribing
// returns errs one after the other, then nothing; back counts calls of Back.
func boxed(t *testing.T, errs []error, fn func(b *inbox.Box, end context.CancelFunc, log *bytes.Buffer, back *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(context.Background())
		var background life.Group
		var log bytes.Buffer
		var back atomic.Int32
		fn(&inbox.Box{Env: life.Env{Context: ctx, Background: &background}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Back: func() { back.Add(1) },
			Subscribe: func(context.Context) (err error) {
				if len(errs) > 0 {
					err, errs = errs[0], errs[1:]
				}
				return err
			}}, end, &log, &back)
		end()
		background.Wait()
	})
}

var errRefused = errors.New("refused")

func TestOpen(t *testing.T) {
	boxed(t, nil, func(b *inbox.Box, _ context.CancelFunc, log *bytes.Buffer, back *atomic.Int32) {
		if err := b.Open(t.Context()); err != nil || b.Deaf.Load() || log.Len() > 0 || back.Load() > 0 {
			t.Errorf("%v, deaf %v, log %q, back %d", err, b.Deaf.Load(), log, back.Load())
		}
	})
}

// A session that may not subscribe works without, and hears when it may.
func TestOpenThatIsRefused(t *testing.T) {
	boxed(t, []error{errRefused, errRefused, errRefused}, func(b *inbox.Box, _ context.CancelFunc, log *bytes.Buffer, back *atomic.Int32) {
		if err := b.Open(t.Context()); err != nil || !b.Deaf.Load() || strings.Count(log.String(), "cannot subscribe") != 1 {
			t.Errorf("%v, deaf %v, log %q", err, b.Deaf.Load(), log)
		}
		synctest.Wait()
		if !b.Deaf.Load() || back.Load() > 0 {
			t.Error("it hears although it was refused a second time")
		}
		time.Sleep(3 * inbox.RefusalRetry / 5)
		synctest.Wait()
		if b.Deaf.Load() || back.Load() != 1 {
			t.Errorf("when it may: deaf %v, back %d", b.Deaf.Load(), back.Load())
		}
	})
}

func TestOpenEndsWithItsContext(t *testing.T) {
	boxed(t, []error{context.Canceled}, func(b *inbox.Box, _ context.CancelFunc, log *bytes.Buffer, _ *atomic.Int32) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := b.Open(ctx); !errors.Is(err, context.Canceled) || log.Len() > 0 {
			t.Errorf("%v, log %q", err, log)
		}
	})
}

// What keeps asking ends with the session.
func TestAskingEndsWithTheSession(t *testing.T) {
	refusals := make([]error, 1000)
	for i := range refusals {
		refusals[i] = errRefused
	}
	boxed(t, refusals, func(b *inbox.Box, end context.CancelFunc, _ *bytes.Buffer, back *atomic.Int32) {
		if err := b.Open(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(inbox.RefusalRetry)
		end()
		b.Background.Wait()
		if !b.Deaf.Load() || back.Load() > 0 {
			t.Errorf("deaf %v, back %d", b.Deaf.Load(), back.Load())
		}
	})
}

// A connection to another server does not reach the session, even if one to its own does, nor where an operator watches
// all channels of that server.
func TestReached(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		b, client := &inbox.Box{Session: "a"}, s.Client(t)
		locktest.Watches(t, s)
		if b.Reached(t.Context(), client) {
			t.Error("it is reached, and listens nowhere")
		}
		locktest.Hears(t, s, inbox.Prefix+"a")
		if !b.Reached(t.Context(), client, client) {
			t.Error("it is not reached where it listens")
		}
		watched := redistest.Mini(t)
		locktest.Watches(t, watched)
		other := watched.Client(t)
		if b.Reached(t.Context(), other, client) || b.Reached(t.Context(), client, other) {
			t.Error("it is reached by way of another server")
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if b.Reached(ended, client) {
			t.Error("it is reached without an answer")
		}
	})
}

// A user who may not ask for the number of listeners finds out by a question.
func TestReachedByAQuestion(t *testing.T) {
	s := redistest.Real(t)
	locktest.Must(t, s.Do(t, "ACL", "SETUSER", "u", "on", ">secret", "~*", "&*", "+@all", "-pubsub").Error())
	b, client := &inbox.Box{Session: "a"}, s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "u", "secret" })
	if b.Reached(t.Context(), client) {
		t.Error("it is reached, and listens nowhere")
	}
	heard := locktest.Hears(t, s, inbox.Prefix+"a")
	if !b.Reached(t.Context(), client) {
		t.Error("it is not reached where it listens")
	}
	if got := locktest.Get(t, heard, 5*time.Second, "the question"); got != inbox.Question {
		t.Errorf("heard %q", got)
	}
}
