package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/clock"
	"relock/pubsub"
)

func sleeper(ctx context.Context, w clock.Wake) *acquisition {
	return &acquisition{request: request{ctx: ctx}, waiter: waiter{wake: w}}
}

// What ends a sleep is what it reports, and how long it took.
func TestSleep(t *testing.T) {
	for name, c := range map[string]struct {
		d                 time.Duration
		silent            bool // there are no messages to wait for
		then              func(w clock.Wake, messages chan<- pubsub.Message, end context.CancelFunc)
		message, timedOut bool
		took              time.Duration
	}{
		"time":                 {d: time.Minute, then: func(clock.Wake, chan<- pubsub.Message, context.CancelFunc) {}, timedOut: true, took: time.Minute},
		"woken":                {d: time.Minute, then: func(w clock.Wake, _ chan<- pubsub.Message, _ context.CancelFunc) { w.Up() }, took: time.Second},
		"woken for good":       {d: clock.Never, silent: true, then: func(w clock.Wake, _ chan<- pubsub.Message, _ context.CancelFunc) { w.Up() }, took: time.Second},
		"context":              {d: time.Minute, then: func(_ clock.Wake, _ chan<- pubsub.Message, end context.CancelFunc) { end() }, took: time.Second},
		"context, for good":    {d: clock.Never, silent: true, then: func(_ clock.Wake, _ chan<- pubsub.Message, end context.CancelFunc) { end() }, took: time.Second},
		"message":              {d: time.Minute, then: func(_ clock.Wake, m chan<- pubsub.Message, _ context.CancelFunc) { m <- pubsub.Message{} }, message: true, took: time.Second},
		"message, for good":    {d: clock.Never, then: func(_ clock.Wake, m chan<- pubsub.Message, _ context.CancelFunc) { m <- pubsub.Message{} }, message: true, took: time.Second},
		"the time is over now": {d: 0, then: func(clock.Wake, chan<- pubsub.Message, context.CancelFunc) {}, timedOut: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				w, messages := make(clock.Wake, 1), make(chan pubsub.Message, 1)
				var then sync.WaitGroup
				then.Go(func() {
					time.Sleep(time.Second)
					c.then(w, messages, end)
				})
				defer then.Wait()
				heard := messages
				if c.silent {
					heard = nil
				}
				began := time.Now()
				message, timedOut := sleeper(ctx, w).sleep(c.d, heard)
				if took := time.Since(began); message != c.message || timedOut != c.timedOut || took != c.took {
					t.Errorf("message %v, timed out %v, after %v", message, timedOut, took)
				}
			})
		})
	}
}

// A caller that is woken before it sleeps does not sleep, and is woken once however often.
func TestUpBeforeSleep(t *testing.T) {
	w := make(clock.Wake, 1)
	w.Up()
	w.Up()
	if _, timedOut := sleeper(t.Context(), w).sleep(time.Hour, nil); timedOut {
		t.Error("it slept")
	}
	if _, timedOut := sleeper(t.Context(), w).sleep(time.Millisecond, nil); !timedOut {
		t.Error("it was woken twice")
	}
}
