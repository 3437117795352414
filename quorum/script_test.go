package quorum_test

import (
	"fmt"
	"strings"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/quorum"
)

// The script is safe to run twice, changes nothing when it fails, and says in its header which
// keys it takes.
func TestScripts(t *testing.T) {
	src := map[string]string{"acquire": quorum.AcquireSource}
	keys := locktest.Keys("k", "life")
	cases := []locktest.ScriptCase{
		locktest.Case("another type", "acquire", locktest.Setup("SET k 1"), keys, locktest.Args("me", "1000", "0"), "WRONGTYPE", "WRONGTYPE", "k=1"),
		locktest.Case("the life is of another type", "acquire", locktest.Setup("HSET life a 1"), keys, locktest.Args("me", "1000", "0"), "WRONGTYPE", "WRONGTYPE", "life{a:1}"),
		locktest.Case("a resend", "acquire", locktest.Setup("HSET k me 1"), keys, locktest.Args("me", "1000", "3600000"), "[1 1 0 0]", "[1 1 0 0]", "k{me:1}"),
	}
	locktest.RunScripts(t, src, cases)
	locktest.RefuseWrites(t, src, cases)
	locktest.CheckHeaders(t, src)
}

// A server gives no votes in a life that has just begun: when the key of the life is gone, is not
// one, names another run of the server, or is of the future, because the clock was set back.
func TestLife(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ask := func(settle string) string {
			m, err := s.Do(t, "EVAL", quorum.AcquireSource, "2", "k", lifeKey, "me", "1000", settle).ToAny()
			must(t, err)
			return fmt.Sprint(m)
		}
		life := func() string {
			text, err := s.Do(t, "GET", lifeKey).ToString()
			must(t, err)
			return text
		}
		ripen(t, s)
		old := life()
		if got := ask("3600000"); got != "[1 1 0 1]" || life() != old {
			t.Errorf("an old life: %s, %q, was %q", got, life(), old)
		}
		run, _, _ := strings.Cut(old, " ")
		for what, set := range map[string]string{
			"none": "", "not one": "x", "another run": "0123456789abcdef 1", "the future": run + " 99999999999999",
		} {
			if s.IsMini() && what == "another run" {
				continue // it tells no run id
			}
			s.FlushAll(t)
			if set != "" {
				must(t, s.Do(t, "SET", lifeKey, set).Error())
			}
			if got := ask("3600000"); !strings.HasPrefix(got, "[-2 3600000 ") && !strings.HasPrefix(got, "[-2 35999") {
				t.Errorf("%s: %s", what, got)
			}
			began := life()
			if got := ask("3600000"); !strings.HasPrefix(got, "[-2 3") || life() != began {
				t.Errorf("%s, asked again: %s, %q, was %q", what, got, life(), began)
			}
			if now, _, _ := strings.Cut(began, " "); now != run {
				t.Errorf("%s: the life is %q, of run %q", what, began, run)
			}
			if got := ask("0"); got != "[1 1 0 1]" {
				t.Errorf("%s, when it is over: %s", what, got)
			}
		}
	})
}

// A caller that may not use INFO gives no new life to a server, and does not end that of others.
func TestLifeWithoutInfo(t *testing.T) {
	s := redistest.Real(t)
	ripen(t, s)
	old, err := s.Do(t, "GET", lifeKey).ToString()
	must(t, err)
	must(t, s.Do(t, "ACL", "SETUSER", "default", "-info").Error())
	m, err := s.Do(t, "EVAL", quorum.AcquireSource, "2", "k", lifeKey, "me", "1000", "3600000").ToAny()
	must(t, err)
	if now, _ := s.Do(t, "GET", lifeKey).ToString(); fmt.Sprint(m) != "[1 1 0 1]" || now != old {
		t.Errorf("without INFO: %v, and the life is %q, was %q", m, now, old)
	}
}
