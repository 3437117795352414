package rlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A server that has renamed a command that a session does not try when it begins is a bad config of the call that needs it.
func TestARenamedCommandIsABadConfig(t *testing.T) {
	for _, name := range []string{"INCRBY", "HDEL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Real(t, "--rename-command", name, "")
			ses, err := rlock.Dial(within(t, 20*time.Second), s.Option(), rlock.Config{ReleaseTimeout: 10 * time.Second})
			must(t, err)
			_, h, err := rlock.New(ses, "x", rlock.Fenced()).Lock(within(t, 20*time.Second))
			if err == nil {
				err = h.Unlock()
			}
			if !errors.Is(err, rlock.ErrConfig) || strings.Count(err.Error(), "rename-command") != 1 {
				t.Error(err)
			}
			_ = ses.Close() // it may not release what it holds
		})
	}
}
