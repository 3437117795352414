package rwlock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The write side ends, and read holds inside of it stay that deserve less: the lock becomes a read lock
// also for a user who may not touch the reader's timeout key.
func TestADowngradeToAShorterLeaseTouchesNoTimeoutKey(t *testing.T) {
	s := redistest.Real(t)
	moveStep{"a writer", "acquire_write", acqW, args("me", "60000", "a", "0", ""), 60000, gone}.run(t, s)
	moveStep{"a read inside", "acquire_read", acqR, args("me", "30001", "c", "0", "1"), 60000, 30001}.run(t, s)
	locktest.Must(t, s.Do(t, "ACL", "SETUSER", "few", "on", ">secret", "~*", "&*", "+@all", "-set").Error())
	opt := s.Option()
	opt.Username, opt.Password, opt.DisableCache = "few", "secret", true
	client, err := rueidis.NewClient(opt)
	locktest.Must(t, err)
	t.Cleanup(client.Close)
	release := client.B().Arbitrary("EVAL", rwlock.ScriptSources()["release_write"], strconv.Itoa(len(relW))).Keys(relW...).
		Args(endingW(ending("2", "10000", "1", "1", "0", "a"), "", "")...).Build()
	if err := client.Do(t.Context(), release).Error(); err != nil {
		t.Errorf("the write side was not released: %v", err)
	}
	if mode, err := s.Do(t, "HGET", "lock", "mode").ToString(); mode != "read" || err != nil {
		t.Errorf("the lock's mode is %q, %v; want read", mode, err)
	}
	moveStep{"a renewal", "renew", extR, args("10000", "r4:me"), 10001, 10001}.run(t, s)
}

// A reader leaves beside another one, and its user may not ask any more which of them stays longest: the script leaves the
// TTL as it is. It ended with an error of Lua, which no sentinel matched.
func TestAReaderLeavesWhoMayNotAskForTheLastOne(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	allow := func(rules ...string) {
		locktest.Must(t, s.Do(t, append([]string{"ACL", "SETUSER", "u", "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	}
	allow()
	opt := s.Option()
	opt.Username, opt.Password = "u", "secret"
	ctx := locktest.Within(t, time.Minute)
	ses, err := rlock.Dial(ctx, opt, rlock.Config{})
	locktest.Must(t, err)
	t.Cleanup(func() { ses.Close() })
	_, first, err := rwlock.New(ses, "x").RLock(ctx)
	locktest.Must(t, err)
	_, other, err := rwlock.New(dial(t, s, rlock.Config{}), "x").RLock(ctx)
	locktest.Must(t, err)
	allow("-zrevrange")
	locktest.Must(t, first.Unlock())
	allow()
	locktest.Must(t, other.Unlock())
}
