package fairlock_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// runAs returns a function that runs a script as a user who may do everything but what the rules forbid.
func runAs(t *testing.T, s *redistest.Server, rules ...string) func(script string, args []string) (string, error) {
	t.Helper()
	locktest.Must(t, s.Do(t, append([]string{"ACL", "SETUSER", "few", "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	opt := s.Option()
	opt.Username, opt.Password, opt.DisableCache = "few", "secret", true
	client, err := rueidis.NewClient(opt)
	locktest.Must(t, err)
	t.Cleanup(client.Close)
	return func(script string, args []string) (string, error) {
		reply, err := client.Do(t.Context(), client.B().Arbitrary("EVAL", fairlock.ScriptSources()[script],
			strconv.Itoa(len(keys))).Keys(keys...).Args(args...).Build()).ToAny()
		return fmt.Sprint(reply), err
	}
}

// A hold with an id is released by a user who may not count the ids as well, and the lock is free.
func TestAReleaseNeedsNoCountOfTheIDs(t *testing.T) {
	s := redistest.Real(t)
	locktest.Must(t, s.Do(t, "HSET", "lock", "ann", "1").Error())
	locktest.Must(t, s.Do(t, "SADD", "ids", "a").Error())
	if _, err := runAs(t, s, "-scard")("release", args("ann", "00001A#", "0", "0", "1", "a")); err != nil {
		t.Errorf("the hold was not released: %v", err)
	}
	if n, err := s.Do(t, "EXISTS", "lock", "ids").AsInt64(); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// A user who may not ask who listens grants the lock to the first waiter. The grant was published, so
// it stands although no connection received it.
func TestAGrantStandsWhereWhoListensIsNotTold(t *testing.T) {
	s := redistest.Real(t)
	for _, cmd := range set(append(waiting(fresh, e1, run1, e2, run1), "HSET lock A9 1")...) {
		must(t, s.Do(t, cmd...).Error())
	}
	if reply, err := runAs(t, s, "-pubsub")("release", telling("A9", "00001A9")); reply != "[0 1 -1]" || err != nil {
		t.Errorf("replied %s, %v", reply, err)
	}
	want := "lock{A1:1} queue<" + e2 + "> " + known(fresh, e2+":"+run1+"3")
	if got := locktest.Describe(t, s); got != want {
		t.Errorf("Redis has %q, want %q", got, want)
	}
}
