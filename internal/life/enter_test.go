package life_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"relock/internal/life"
)

// A context of the caller's own that blocks when it is asked, or ends the goroutine, is in nobody's way.
func TestEnterWithHasEnteredNothingWhileItAsksTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := life.New()
		free := make(chan struct{})
		for _, end := range []func(){func() { <-free }, func() { panic("on purpose") }, runtime.Goexit} {
			go func() {
				defer func() { _ = recover() }()
				if l.EnterWith(asked{t.Context(), end}) == nil {
					l.Leave()
				}
			}()
		}
		synctest.Wait()
		if !over(l.Idle()) {
			t.Error("something is inside")
		}
		close(free)
	})
}

// asked is a context that does something when it is asked for its error.
type asked struct {
	context.Context
	do func()
}

func (c asked) Err() error {
	c.do()
	return c.Context.Err()
}
