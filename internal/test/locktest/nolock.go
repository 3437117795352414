package locktest

import (
	"errors"
	"strings"
	"testing"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// NoLock is a hash that is no lock, under the name x.
type NoLock struct{ Name, Hash, TTL, Want string }

// Check runs every operation of a lock named x on such a hash. Each must say at once what is
// wrong with it, and leave it as it is.
func (c NoLock) Check(t *testing.T, s *redistest.Server, ops map[string]func() error) {
	t.Helper()
	s.FlushAll(t)
	for _, cmd := range Setup("HSET x "+c.Hash, "PEXPIRE x "+c.TTL)[:1+min(1, len(c.TTL))] {
		Must(t, s.Do(t, cmd...).Error())
	}
	before := Describe(t, s)
	for what, op := range ops {
		err := op()
		if err == nil || errors.Is(err, rlock.ErrNotAcquired) || !strings.Contains(err.Error(), "is no lock") || !strings.Contains(err.Error(), c.Want) {
			t.Errorf("%s: %v, want an error that tells of %q", what, err, c.Want)
		}
	}
	if after := Describe(t, s); after != before {
		t.Errorf("Redis has %q, and had %q", after, before)
	}
}
