package fault_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/engine"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A release enters the next caller of its session in the line. Before its answer is there another session has had the
// lock and has given it to that caller, who loses it again by force. The caller goes on as one that was refused. (Callers
// of a fair lock stand in the line before the release.)
func TestForceUnlockOfWhatAReleaseHasEntered(t *testing.T) {
	type lock interface {
		locktest.Mutex
		ForceUnlock(context.Context) (bool, error)
	}
	for name, kind := range map[string]struct {
		of       func(*rlock.Session, string) lock
		family   string // as the engine calls it
		releases func(cmd []string) bool
	}{
		"plain": {func(s *rlock.Session, name string) lock { return rlock.New(s, name) }, "mutex", locktest.Calls(t, "release")},
		"write": {func(s *rlock.Session, name string) lock { return rwlock.New(s, name) }, "rw", publishes},
	} {
		t.Run(name, func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				ctx, name := within(t, time.Minute), redistest.Name(t)
				ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 20 * time.Second})
				other := dial(t, s, rlock.Config{})
				machine := (*engine.Session)(ses)
				m, others := kind.of(ses, name), kind.of(other, name)
				_, h, err := others.Lock(ctx)
				must(t, err)
				must(t, h.Unlock()) // Redis knows the script from here on, so that its first answer is the release's
				_, h, err = m.Lock(ctx)
				must(t, err)
				second := locktest.GoLock(others, ctx)
				awaitEntry(t, s, name, other)
				next := locktest.GoLock(m, ctx)
				redistest.Eventually(t, 5*time.Second, "the next caller to wait", func() bool { return machine.WaitersOf(kind.family, name) == 1 })
				machine.SliceFor(kind.family, name, -time.Second)
				_, answer := p.HoldReply(func(cmd []string) bool { return kind.releases(cmd) && speaksOf(h.Owner(), cmd) })
				defer answer()
				unlocked := locktest.Go(h.Unlock)
				got := locktest.Get(t, second, 10*time.Second, "the other session's Lock")
				must(t, got.Err)
				awaitEntry(t, s, name, ses)
				must(t, got.Hold.Unlock())
				found, err := others.ForceUnlock(ctx)
				must(t, err)
				if !found {
					t.Error("the caller that was entered does not have the lock")
				}
				redistest.Eventually(t, 10*time.Second, "the session to have heard of it", func() bool {
					_, asking, _, _, _ := locktest.Books(ses)
					return asking == 0
				})
				answer()
				must(t, locktest.Get(t, unlocked, 10*time.Second, "Unlock"))
				got = locktest.Get(t, next, 20*time.Second, "the next Lock")
				must(t, got.Err)
				must(t, got.Hold.Unlock())
			})
		})
	}
}

// speaksOf reports whether an argument of a command is about an owner.
func speaksOf(owner string, cmd []string) bool {
	return slices.ContainsFunc(cmd, func(arg string) bool { return strings.Contains(arg, owner) })
}

// publishes matches the scripts that may publish. Of a writer that has the lock that is the release.
func publishes(cmd []string) bool {
	return strings.HasPrefix(cmd[0], "EVAL") && slices.Contains(cmd, "PUBLISH")
}

// awaitEntry waits until a session has an entry in the line of a lock of any kind.
func awaitEntry(t *testing.T, s *redistest.Server, name string, ses *rlock.Session) {
	t.Helper()
	redistest.Eventually(t, 5*time.Second, "the session to stand in the line", func() bool {
		members, err := s.Do(t, "ZRANGEBYSCORE", locktest.LineOf(name), "0", "2.4e15").AsStrSlice()
		return err == nil && slices.ContainsFunc(members, func(m string) bool { return strings.Contains(m, ses.ID()) })
	})
}
