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

// A user who may not publish on the channels of sessions frees the lock. The first waiter, which
// cannot be told, keeps its place, no second one overtakes it, and nothing of a grant is left.
func TestAUserWhoMayNotTellTheFirstWaiterFreesTheLock(t *testing.T) {
	for what, c := range map[string]struct{ entry, flags string }{
		"private": {e1, run1},
		"fenced":  {e1, fenced},
		"named":   {en, named},
	} {
		t.Run(what, func(t *testing.T) {
			s := redistest.Real(t)
			state := append(waiting(fresh, c.entry, c.flags, e2, run1), "HSET lock A9 1", "SET token 41")
			for _, cmd := range set(state...) {
				must(t, s.Do(t, cmd...).Error())
			}
			free := locktest.Hears(t, s, "ch")
			run := runAs(t, s, "resetchannels", "&ch")
			check := func(step, script string, args []string, want string) {
				t.Helper()
				if reply, err := run(script, args); reply != want || err != nil {
					t.Errorf("%s: replied %s, %v; want %s", step, reply, err, want)
				}
				must(t, s.Do(t, "DEL", "token").Error()) // one was drawn for nothing
				want = "queue<" + c.entry + " " + e2 + "> " + known(fresh, c.entry+":"+c.flags+"3", e2+":"+run1+"3")
				if got := locktest.Describe(t, s); got != want {
					t.Errorf("%s: Redis has %q, want %q", step, got, want)
				}
			}
			check("release", "release", args("A9", "00001A9"), "[0 1 -1]")
			if got := locktest.Get(t, free, patience, "that the lock is free"); got != "0" {
				t.Errorf("heard %q", got)
			}
			check("resend", "release", args("A9", "00001A9"), "[0 0 -1]")
			check("a caller that does not wait", "acquire", try("A5", "0", ""), "[0 -1 0 0]")
			if reply, err := run("heartbeat", args("A", life, c.entry)); err != nil {
				t.Errorf("the first waiter's heartbeat: %s, %v", reply, err)
			}
			if n, err := s.Do(t, "HLEN", "lock").AsInt64(); n != 1 || err != nil {
				t.Errorf("the lock has %d owners after the first waiter's heartbeat, %v", n, err)
			}
		})
	}
}
