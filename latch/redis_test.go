package latch_test

import (
	"strings"
	"testing"
	"time"

	"relock/internal/keyname"
	"relock/internal/test/redistest"
	"relock/latch"
	"relock/rlock"
)

// Any name works, in a Cluster too, where the channel is in the slot of the key.
func TestNames(t *testing.T) {
	names := []string{"x", "a b \x00", "{b}", "a{b}c", "a}b", "a{b", "{}x", strings.Repeat("long", 256)}
	check := func(t *testing.T, ses *rlock.Session) {
		ctx := within(t, time.Minute)
		for _, name := range names {
			l := latch.New(ses, name)
			sets(t, ctx, l, 1, true)
			c := await(ctx, l)
			must(t, l.CountDown(ctx))
			opens(t, c)
		}
	}
	t.Run("single", func(t *testing.T) {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) {
			ses := dial(t, s, slow())
			check(t, ses)
			for _, name := range names {
				if c := latch.New(ses, name).Channel(); c != "redisson_countdownlatch__channel__{"+name+"}" {
					t.Errorf("the channel of %q is %q", name, c)
				}
			}
		})
	})
	t.Run("cluster", func(t *testing.T) {
		redistest.SkipShort(t)
		ses, err := rlock.Dial(within(t, time.Minute), redistest.NewCluster(t).Option(), slow())
		must(t, err)
		defer ses.Close()
		check(t, ses)
		for _, name := range names {
			if c := latch.New(ses, name).Channel(); keyname.Slot(c) != keyname.Slot(name) {
				t.Errorf("the channel of %q is %q, in another slot", name, c)
			}
		}
	})
}

// The ACL that docs/operations.md gives is enough (R29).
func TestDocumentedACLIsEnough(t *testing.T) {
	s := redistest.Real(t)
	must(t, s.Do(t, redistest.DocumentedACL(t)...).Error())
	must(t, s.Do(t, "ACL", "LOG", "RESET").Error())
	opt := s.Option()
	opt.Username, opt.Password = "locks", "secret"
	ctx := within(t, patience)
	ses, err := rlock.Dial(ctx, opt, rlock.Config{Prefix: "app:", PollFloor: time.Minute})
	must(t, err)
	l := latch.New(ses, "x")
	sets(t, ctx, l, 1, true)
	c := await(ctx, l)
	redistest.Eventually(t, patience, "the waiter to listen", func() bool {
		return strings.Contains(strings.Join(s.Channels(t), " "), "countdownlatch")
	})
	must(t, l.CountDown(ctx))
	opens(t, c)
	must(t, ses.Close())
	log, err := s.Do(t, "ACL", "LOG").ToArray()
	must(t, err)
	for _, entry := range log {
		t.Errorf("refused: %v", entry.String())
	}
}
