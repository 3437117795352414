package multilock_test

import (
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
)

// A mutex that is named twice, plain and Fenced, has a token, whichever is named first.
func TestFencedAndPlain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses := dial(t, s, slow())
		for _, c := range []struct{ plain, fenced multilock.Part }{
			{rlock.New(ses, "a"), rlock.New(ses, "a", rlock.Fenced())},
			{fairlock.New(ses, "b"), fairlock.New(ses, "b", rlock.Fenced())},
		} {
			for i, m := range []*multilock.Mutex{multilock.New(c.plain, c.fenced), multilock.New(c.fenced, c.plain)} {
				_, h, err := m.Lock(ctx)
				must(t, err)
				for what, p := range map[string]multilock.Part{"plain": c.plain, "Fenced": c.fenced} {
					if got := h.Token(p); got != int64(i+1) {
						t.Errorf("the token of %T, named by the %s handle, is %d, want %d", p, what, got, i+1)
					}
				}
				must(t, h.Unlock())
			}
		}
	})
}
