package fault_test

import (
	"errors"
	"testing"

	"relock/rlock"
)

// faultNoSentinel checks that err is an error, but says none of what the package's own
// errors say.
func faultNoSentinel(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error", what)
	}
	for _, s := range []error{
		rlock.ErrNotAcquired, rlock.ErrNotHeld, rlock.ErrLost, rlock.ErrReleased,
		rlock.ErrClosed, rlock.ErrName, rlock.ErrConfig, rlock.ErrArgument,
	} {
		if errors.Is(err, s) {
			t.Fatalf("%s: %v; it must not match %v", what, err, s)
		}
	}
}
