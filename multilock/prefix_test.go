package multilock_test

import (
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/multilock"
	"relock/rlock"
	"relock/rwlock"
)

// Two sessions of one Redis may name one lock although their prefixes differ. It is refused like any lock that two
// sessions name: the multi-lock would wait for itself. In two Redises there are two locks.
func TestOrderAcrossPrefixes(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		of := func(s *redistest.Server, prefix string) *rlock.Session {
			cfg := slow()
			cfg.Prefix = prefix
			return dial(t, s, cfg)
		}
		bare, prefixed, elsewhere := of(s, ""), of(s, "p:"), of(redistest.Mini(t), "p:")
		for what, parts := range map[string][2]multilock.Part{
			"a lock":         {rlock.New(bare, "p:x"), rlock.New(prefixed, "x")},
			"the read sides": {multilock.Read(rwlock.New(prefixed, "y")), multilock.Read(rwlock.New(bare, "p:y"))},
		} {
			_, _, err := multilock.New(parts[:]...).Lock(ctx, rlock.Wait(time.Second))
			is(t, what+" by two sessions of one Redis", err, rlock.ErrArgument)
		}
		_, h, err := multilock.New(rlock.New(elsewhere, "x"), rlock.New(bare, "p:x")).Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
	})
}
