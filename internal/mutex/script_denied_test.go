package mutex_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// runAs returns a function that runs a script as a user who may do everything but what the rules forbid.
func runAs(t *testing.T, s *redistest.Server, rules ...string) func(script string, keys, args []string) (string, error) {
	t.Helper()
	locktest.Must(t, s.Do(t, append([]string{"ACL", "SETUSER", "few", "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	opt := s.Option()
	opt.Username, opt.Password, opt.DisableCache = "few", "secret", true
	client, err := rueidis.NewClient(opt)
	locktest.Must(t, err)
	t.Cleanup(client.Close)
	return func(script string, keys, args []string) (string, error) {
		reply, err := client.Do(t.Context(), client.B().Arbitrary("EVAL", timeless()[script],
			strconv.Itoa(len(keys))).Keys(keys...).Args(args...).Build()).ToAny()
		return fmt.Sprint(reply), err
	}
}

// A user who may not ask who listens grants the lock to the first, which may hear it. What was published
// stands, although no connection received it.
func TestAGrantStandsWhereWhoListensIsNotTold(t *testing.T) {
	s := redistest.Real(t)
	run := runAs(t, s, "-pubsub")
	for what, c := range map[string]struct {
		script string
		args   []string
		state  []string
		reply  string
	}{
		"a release":                 {"release", with(free("me"), 3, "1"), mine, "[0 1 -1 0 ~]"},
		"a TryLock":                 {"acquire", with(try("o", "C1"), 11, "1"), nil, "[0 -1 0 0]"},
		"a look":                    {"look", with(looks("fb"), 2, "1"), nil, "[-1 ~]"},
		"a lock that is taken away": {"force_unlock", with(force("me"), 3, "1"), mine, "[me]"},
	} {
		begin(t, s, stand("f1 fb", c.state...)...)
		if reply, err := run(c.script, line, c.args); reply != c.reply || err != nil {
			t.Errorf("%s replied %s, %v; want %s", what, reply, err, c.reply)
		}
		if got, want := byName(locktest.Describe(t, s)), "line<fb #fb sA sB wfb> lock{A1:1}"; got != want {
			t.Errorf("after %s Redis has %q, want %q", what, got, want)
		}
	}
}

// A user who may not publish on the channels of sessions frees the lock. The first, which cannot be told,
// keeps its place and comes by its look; nobody overtakes it, and nothing of a grant is left.
func TestWhoMayNotTellTheFirstFreesTheLock(t *testing.T) {
	s := redistest.Real(t)
	free1 := locktest.Hears(t, s, "ch")
	run := runAs(t, s, "resetchannels", "&ch")
	for _, first := range []string{"f1", "h1", "ht", "ft", "e1", "i1", "g1"} {
		begin(t, s, stand(first+" fb", append(mine, "SET token 41", called1)...)...)
		check := func(step, script string, keys, args []string, reply string) {
			t.Helper()
			if got, err := run(script, keys, args); got != reply || err != nil {
				t.Errorf("%s, %s: replied %s, %v; want %s", first, step, got, err, reply)
			}
			locktest.Must(t, s.Do(t, "DEL", "token").Error()) // some may have been drawn for nothing
			known, waiting := "#"+first+" #fb", "w"+first+" wfb"
			if first == "g1" {
				known, waiting = "#fb", "wfb"
			}
			want := "line<" + first + " fb " + known + " sA sB c " + waiting + ">"
			if got := byName(locktest.Describe(t, s)); got != want {
				t.Errorf("%s, %s: Redis has %q, want %q", first, step, got, want)
			}
		}
		check("a release", "release", lineToken, freeFenced("me"), "[0 1 -1 0 ~]")
		if got := locktest.Get(t, free1, 10*time.Second, "that the lock is free"); got != "0" {
			t.Errorf("%s: heard %q", first, got)
		}
		check("the same again", "release", lineToken, freeFenced("me"), "[0 0 -1]")
		check("a caller that does not wait", "acquire", line, try("o", "C1"), "[0 -1 0 0]")
		locktest.Must(t, s.Do(t, setup(called1)[0]...).Error()) // what the lock is left to it for is over
		check("its look", "look", line, looks(first), "[0 ~]")
		keys := map[string][]string{"i1": lineIDs, "ht": lineToken, "ft": lineToken}[first]
		if keys == nil {
			keys = line
		}
		token := map[string]string{"ht": "2", "ft": "2"}[first]
		if token == "" {
			token = "0"
		}
		if got, err := run("acquire", keys, come(first)); got != "[1 1 "+token+" 1]" || err != nil {
			t.Errorf("%s asks: replied %s, %v", first, got, err)
		}
	}
}

// Whose session hears nothing need not be told: it learns of the lock when it looks.
func TestWhoHearsNothingIsLetInByAUserWhoMayNotTellIt(t *testing.T) {
	s := redistest.Real(t)
	begin(t, s, stand("d1 fb", mine...)...)
	if got, err := runAs(t, s, "resetchannels", "&ch")("release", line, free("me")); got != "[0 1 -1 0 ~]" || err != nil {
		t.Errorf("replied %s, %v", got, err)
	}
	if got, want := byName(locktest.Describe(t, s)), "line<fb #fb sA sB wfb> lock{A6:1}"; got != want {
		t.Errorf("Redis has %q, want %q", got, want)
	}
}

// The line of others stays where a user may not see it, and the lock comes free.
func TestAReleaseByWhoMayNotReadTheLineLeavesItAlone(t *testing.T) {
	s := redistest.Real(t)
	run := runAs(t, s, "-zrange")
	for what, args := range map[string][]string{"a release": free("me"), "a release by id": freeOne("me")} {
		begin(t, s, stand("f1", mineA...)...)
		if got, err := run("release", lineIDs, args); err != nil {
			t.Errorf("%s replied %s, %v", what, got, err)
		}
		locktest.Must(t, s.Do(t, "DEL", "ids").Error())
		if got, want := byName(locktest.Describe(t, s)), "line<f1 #f1 sA wf1>"; got != want {
			t.Errorf("after %s Redis has %q, want %q", what, got, want)
		}
	}
	begin(t, s, stand("fb", "HSET lock A1 1", "PEXPIRE lock 9000")...)
	if got, err := run("acquire", line, come("f1")); got != "[1 1 0 0]" || err != nil {
		t.Errorf("taking up replied %s, %v", got, err)
	}
	if got, want := byName(locktest.Describe(t, s)), "line<fb #fb sB wfb> lock{A1:1}"; got != want {
		t.Errorf("after taking up Redis has %q, want %q", got, want)
	}
}

// A look says nothing of a server that takes no writes: the session comes again, and its entry stays as it is.
func TestALookIsAnsweredByAServerThatTakesNoWrites(t *testing.T) {
	s := redistest.Real(t)
	begin(t, s, stand("fb", append(byOther, at(later, "f1"))...)...)
	before := locktest.Describe(t, s)
	locktest.Must(t, s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "1").Error())
	t.Cleanup(func() { locktest.Must(t, s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0").Error()) })
	cmd := append([]string{"EVAL", timeless()["look"], "2"}, line...)
	if got, err := s.Do(t, append(cmd, looks("f1")...)...).ToAny(); err != nil || fmt.Sprint(got) != "[-1 ~]" {
		t.Errorf("the look replied %v, %v", got, err)
	}
	if after := locktest.Describe(t, s); after != before {
		t.Errorf("Redis has %q, and had %q", after, before)
	}
}

// A forced unlock ends the holds also where it can leave no mark, and no mark is left without an end.
func TestAForcedUnlockByWhoMayNotLeaveAMark(t *testing.T) {
	s := redistest.Real(t)
	for _, rule := range []string{"-sadd", "-pexpire"} {
		begin(t, s, mine...)
		if got, err := runAs(t, s, rule)("force_unlock", lineMark, marked); got != "[me]" || err != nil {
			t.Errorf("%s: replied %s, %v", rule, got, err)
		}
		if got := locktest.Describe(t, s); got != "" {
			t.Errorf("%s: Redis has %q", rule, got)
		}
	}
}

// A server without memory takes the mark of a forced unlock, which has made room before.
func TestAForcedUnlockWithoutMemoryLeavesItsMark(t *testing.T) {
	s := redistest.Real(t)
	begin(t, s, mine...)
	locktest.Must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "1").Error())
	t.Cleanup(func() { locktest.Must(t, s.Do(t, "CONFIG", "SET", "maxmemory", "0").Error()) })
	if got := eval(t, s, "force_unlock", lineMark, marked...); got != "[me]" {
		t.Errorf("replied %s", got)
	}
	if got := locktest.Describe(t, s); got != "mark(me)" {
		t.Errorf("Redis has %q", got)
	}
}
