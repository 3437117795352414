package fairlock_test

import (
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// A hold with an id is released by a user who may not count the ids as well, and the lock is free.
func TestAReleaseNeedsNoCountOfTheIDs(t *testing.T) {
	s := redistest.Real(t)
	locktest.Must(t, s.Do(t, "HSET", "lock", "ann", "1").Error())
	locktest.Must(t, s.Do(t, "SADD", "ids", "a").Error())
	locktest.Must(t, s.Do(t, "ACL", "SETUSER", "few", "on", ">secret", "~*", "&*", "+@all", "-scard").Error())
	opt := s.Option()
	opt.Username, opt.Password, opt.DisableCache = "few", "secret", true
	client, err := rueidis.NewClient(opt)
	locktest.Must(t, err)
	t.Cleanup(client.Close)
	release := client.B().Arbitrary("EVAL", fairlock.ScriptSources()["release"], strconv.Itoa(len(keys))).Keys(keys...).
		Args(args("ann", "00001A#", "0", "0", "1", "a")...).Build()
	if err := client.Do(t.Context(), release).Error(); err != nil {
		t.Errorf("the hold was not released: %v", err)
	}
	if n, err := s.Do(t, "EXISTS", "lock", "ids").AsInt64(); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}
