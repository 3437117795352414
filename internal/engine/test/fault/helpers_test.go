package fault_test

import (
	"errors"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
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

// faultUser makes a user that may do anything but what the rules of allow forbid from then on, and returns how it connects.
func faultUser(t *testing.T, s *redistest.Server, name string) (opt rueidis.ClientOption, allow func(rules ...string)) {
	allow = func(rules ...string) {
		t.Helper()
		must(t, s.Do(t, append([]string{"ACL", "SETUSER", name, "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	}
	allow()
	opt = s.Option()
	opt.Username, opt.Password = name, "secret"
	return opt, allow
}
