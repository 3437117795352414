package mutex_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
)

// begin makes a state on a server that holds nothing else.
func begin(t *testing.T, s *redistest.Server, cmds ...string) {
	t.Helper()
	s.FlushAll(t)
	for _, cmd := range setup(cmds...) {
		locktest.Must(t, s.Do(t, cmd...).Error())
	}
}

// granted is what the session of an entry is told that has the lock, but for the time.
func granted(name string, token int64, tokens int, last, position int64) waiting.Message {
	head, _, owner := of(name)
	return waiting.Message{Granted: true, Token: token, Tokens: tokens, Lease: 9999 * time.Millisecond, Last: last, Position: position,
		Head: head, Owner: owner, Key: "lock"}
}

// mayAsk is what the session of an entry is told that is called.
func mayAsk(name string, after time.Duration) waiting.Message {
	head, _, owner := of(name)
	m := waiting.Message{After: after, Head: head, Owner: owner, Named: head[0] == 'i' || head[0] == 'n', Key: "lock"}
	if m.Named {
		m.ID = head[len(head)-32:]
	}
	return m
}

// dozing is in the line while the session A is a slow taker that was not heard of just now, and is passed by.
var dozing = []string{at(alive-time.Now().UnixMilli()-900_000, "sA", 7e15+time.Now().Add(time.Minute).UnixMilli(), "pA")}

// A script that lets an entry in tells its session how many callers are in, and which tokens they have.
func TestASessionIsToldWhatItsEntryWasGiven(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		hears := locktest.Hears(t, s, "s:A")
		for _, c := range []struct {
			what, script string
			keys, args   []string
			state        []string
			want         []waiting.Message
		}{
			{"a release", "release", line, free("me"), stand("f1", mine...), []waiting.Message{granted("f1", 0, 0, 3, 1)}},
			{"a release to one caller", "release", line, free("me"), stand("fb h1", append(mine, heard("B", dead))...), []waiting.Message{granted("h1", 0, 0, 4, 2)}},
			{"a release to a plain entry", "release", line, free("me"), stand("g1", mine...), []waiting.Message{granted("g1", 0, 0, 0, 0)}},
			{"a release to one who was passed over", "release", line, free("me"), append(mine, at(later, "f1", 4850000000000005, "#f1"), heard("A", fresh)), []waiting.Message{granted("f1", 0, 0, 5, 1)}},
			{"a release with tokens for all", "release", lineToken, freeFenced("me"), stand("ft", append(mine, "SET token 7")...), []waiting.Message{granted("ft", 9, 2, 3, 1)}},
			{"a release with tokens for one", "release", lineToken, freeFenced("me"), stand("ht", append(mine, "SET token 7")...), []waiting.Message{granted("ht", 9, 2, 3, 1)}},
			{"a release to one who asks", "release", line, free("me"), stand("e1", mine...), []waiting.Message{mayAsk("e1", 0)}},
			{"a release to a named owner, and others behind", "release", line, free("me"), stand("i1 f1", mine...), []waiting.Message{mayAsk("i1", 0), mayAsk("f1", 250*time.Millisecond)}},
			{"a TryLock", "acquire", line, try("o", "B1"), stand("f1"), []waiting.Message{granted("f1", 0, 0, 3, 1)}},
			{"a caller behind", "acquire", line, come("fb"), stand("f1"), []waiting.Message{granted("f1", 0, 0, 3, 1)}},
			{"another's look", "look", line, looks("fb"), stand("f1 fb"), []waiting.Message{granted("f1", 0, 0, 3, 1)}},
			{"its own look", "look", line, looks("f1"), stand("f1 fb"), nil},
			{"a lock that is taken away", "force_unlock", line, force("me"), stand("f1", mine...), []waiting.Message{granted("f1", 0, 0, 3, 1)}},
			{"a caller that leaves a free lock", "release", line, leave("fb"), stand("fb f1"), []waiting.Message{granted("f1", 0, 0, 4, 2)}},
			{"a caller that leaves a lock that is held", "release", line, leave("fb"), stand("fb f1", byOther...), []waiting.Message{mayAsk("f1", 0)}},
			{"a release to one that hears nothing", "release", line, free("me"), stand("d1", mine...), []waiting.Message{granted("d1", 0, 0, 3, 1)}},
			{"a release that passes a slow taker by, and leaves the lock free", "release", line, free("me"), stand("z1 ab", append(mine, dozing...)...), []waiting.Message{mayAsk("z1", 0)}},
			{"a release where three in a row are slow", "release", line, free("me"), stand("z1 z2 z3 gb", append(mine, dozing...)...), nil},
			{"a release where four in a row are slow", "release", line, free("me"), stand("z1 z2 z3 z4 gb", append(mine, dozing...)...), []waiting.Message{granted("z1", 0, 0, 0, 0)}},
		} {
			begin(t, s, c.state...)
			eval(t, s, c.script, c.keys, c.args...)
			locktest.Must(t, s.Do(t, "PUBLISH", "s:A", "end").Error())
			var got []waiting.Message
			for text := locktest.Get(t, hears, 10*time.Second, c.what); text != "end"; text = locktest.Get(t, hears, 10*time.Second, c.what) {
				m, ok := waiting.Parse(text, "A")
				if !ok || m.Granted != (m.At > 0) {
					t.Errorf("%s told %q", c.what, text)
				}
				m.At = 0
				got = append(got, m)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("%s told %+v, want %+v", c.what, got, c.want)
			}
		}
	})
}

// A session that keeps a lock hears that others want it from the first of the line, also where that stands in front of
// entries that were passed over.
func TestTheFirstOfTheLineWantsWhatASessionKeeps(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		hears := locktest.Hears(t, s, "s:K")
		kept := args("HSET lock K:01 1", forever)
		passedOver := append(kept, at(later, "gb"), heard("B", fresh))
		for _, c := range []struct {
			what  string
			args  []string
			state []string
			wants bool
		}{
			{"a plain caller alone", with(come("g1")[:14], 7, "0"), kept, true},
			{"a plain caller behind another", with(come("g1")[:14], 7, "0"), append(kept, stand("gb")...), false},
			{"a plain caller in front of one that was passed over", with(come("g1")[:14], 7, "0"), passedOver, true},
			{"a fair caller in front of one that was passed over", with(come("f1"), 7, "0"), passedOver, true},
		} {
			begin(t, s, c.state...)
			eval(t, s, "acquire", line, c.args...)
			locktest.Must(t, s.Do(t, "PUBLISH", "s:K", "end").Error())
			got := locktest.Get(t, hears, 10*time.Second, c.what)
			if wants := got == "wanted:4:K:01lock"; wants != c.wants {
				t.Errorf("%s: its session hears %q", c.what, got)
			} else if wants {
				locktest.Get(t, hears, 10*time.Second, "the end")
			}
		}
	})
}

// What a release gives ends soon: taking it up sets the end anew. No lease gets shorter by it, for the attempt may come late,
// behind an extension.
func TestWhatWasGivenIsTakenUpForItsOwnLeaseAtLeast(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []struct {
			what     string
			state    []string
			keys     []string
			name     string
			lease    string
			from, to int64
		}{
			{"a longer lease", args("HSET lock A1 1", "PEXPIRE lock 9000"), line, "f1", "30000", 28000, 30000},
			{"a shorter lease", args("HSET lock A1 1", "PEXPIRE lock 9000"), line, "f1", "5000", 7000, 9000},
			{"a shorter lease, with tokens", args("HSET lock A5 1", "PEXPIRE lock 9000", "SET token 7"), lineToken, "ft", "5000", 7000, 9000},
			{"what was taken up before", args("HSET lock A1 1", "PEXPIRE lock 60000"), line, "f1", "30000", 58000, 60000},
			{"a nested hold that came before", args("HSET lock A1 2", "PEXPIRE lock 9000"), line, "f1", "3000", 7000, 9000},
			{"a named owner that is in elsewhere", args("HSET lock ann 1", "PEXPIRE lock 9000", "SADD ids old"), lineIDs, "i1", "3000", 7000, 9000},
			{"a named owner that sends twice", args("HSET lock ann 1", "PEXPIRE lock 9000", "SADD ids "+idN), lineIDs, "i1", "3000", 7000, 9000},
		} {
			begin(t, s, c.state...)
			eval(t, s, "acquire", c.keys, with(come(c.name), 1, c.lease)...)
			if ms, err := s.Do(t, "PTTL", "lock").AsInt64(); err != nil || ms < c.from || ms > c.to {
				t.Errorf("%s: the lock lives for %d ms, %v; want %d to %d", c.what, ms, err, c.from, c.to)
			}
		}
	})
}

// A grant ends soon unless it is taken up, and the line outlives a silence of its sessions.
func TestAGrantAndTheLineHaveAnEnd(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		begin(t, s, stand("f1", mine...)...)
		eval(t, s, "release", line, free("me")...)
		eval(t, s, "acquire", line, come("fb")...)
		for key, want := range map[string]int64{"lock": 9999, "line": 3000000} {
			if ms, err := s.Do(t, "PTTL", key).AsInt64(); err != nil || ms > want || ms < want-2000 {
				t.Errorf("the %s lives for %d ms, %v; want %d", key, ms, err, want)
			}
		}
	})
}

// A session that was silent when its turn came has the old place again when it is heard of, and the next turn.
func TestWhoWasPassedOverAndLooksHasTheOldPlace(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		begin(t, s, stand("fb f1 fc", append(mine, "ZREM line sB", heard("B", silent))...)...)
		see := func(step, want string) {
			t.Helper()
			if got := byName(locktest.Describe(t, s)); got != want {
				t.Errorf("after %s Redis has %q, want %q", step, got, want)
			}
		}
		if n := eval(t, s, "waiters", line[1:], "0"); n != "[7 0]" {
			t.Errorf("%s callers wait while a session is silent", n)
		}
		eval(t, s, "release", line, free("me")...)
		see("the release", "line<fc fb #fb #fc sA sC sB wfb wfc> lock{A1:1}")
		eval(t, s, "look", line, looks("fb")...)
		see("the look", "line<fb fc #fb #fc sA sC sB wfb wfc> lock{A1:1}")
		if n := eval(t, s, "waiters", line[1:], "0"); n != "[6 0]" {
			t.Errorf("%s callers wait when the session is heard of", n)
		}
		eval(t, s, "release", line, free("A1")...)
		see("the next release", "line<fc #fc sA sC sB wfc> lock{B1:1}")
	})
}

// A run of the first caller of a session is joined, and then asks again for itself alone: what the line says of it is
// that of the last word in both, so that it can be joined once more.
func TestTheLastWordOfARunCounts(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		begin(t, s, append(byOther, "DEL token")...)
		one := with(with(with(come("f2"), 13, "0"), 15, "1"), 7, "0")
		two := with(with(with(join("f1", "f2"), 15, "3"), 17, "3"), 7, "0")
		says := func(what string, last, wait float64) {
			t.Helper()
			n, _ := s.Do(t, "ZSCORE", "line", "#"+entries["f2"]).AsFloat64()
			w, _ := s.Do(t, "ZSCORE", "line", "w"+entries["f2"]).AsFloat64()
			if n != 4.85e15+last || w != 8.6e15+wait {
				t.Errorf("%s the last is %.0f of %.0f", what, n-4.85e15, w-8.6e15)
			}
		}
		eval(t, s, "acquire", line, one...)
		eval(t, s, "acquire", line, two...)
		says("joined,", 3, 3)
		eval(t, s, "acquire", line, with(with(one, 13, "1"), 7, "1")...)
		says("alone,", 1, 1)
		eval(t, s, "acquire", line, two...)
		says("joined again,", 3, 3)
	})
}

// A script looks at so many entries at most. Those of killed sessions hide nobody: it is sent again.
func TestALongRowOfTheDeadIsClearedByAFewRuns(t *testing.T) {
	var killed []string
	for i := range 40 {
		killed = append(killed, at(i+1, entry("f", 0, fmt.Sprintf("Z%02d", i))))
	}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []struct {
			what, script string
			keys, args   []string
			state        []string
			again, last  string // replies begin so
			want         string
		}{
			{"a release", "release", line, free("me"), append(mine, at(99, "f1"), heard("A", fresh)), "[0 ", "[0 0 -1]", "lock{A1:1}"},
			{"a caller that leaves", "release", line, leave("fb"), append(mine[:0:0], at(99, "f1"), heard("A", fresh)), "[0 0 -1 -1 0]", "[0 0 -1]", "lock{A1:1}"},
			{"a caller that comes", "acquire", line, come("fb"), nil, "[0 0 ", "[1 1 0 ", "lock{B1:1}"},
			{"a caller that does not wait", "acquire", line, try("o", "B1"), nil, "[0 -1 0 0]", "[1 1 0 1]", "lock{B1:1}"},
			{"a look", "look", line, looks("fb"), append(mine[:0:0], at(99, "f1", 100, "fb"), heard("A", fresh), heard("B", fresh)), "[1 ", "[-1 ", "line<fb sA sB> lock{A1:1}"},
		} {
			begin(t, s, append(append([]string(nil), killed...), c.state...)...)
			for runs := 1; ; runs++ {
				got := eval(t, s, c.script, c.keys, c.args...)
				if n, err := s.Do(t, "EXISTS", "lock").AsInt64(); err != nil || runs == 4 || n == 1 && byName(locktest.Describe(t, s)) == c.want {
					if !strings.HasPrefix(got, c.last) || err != nil || runs == 4 {
						t.Errorf("%s: run %d replied %s, %v; Redis has %q", c.what, runs, got, err, byName(locktest.Describe(t, s)))
					}
					break
				}
				if !strings.HasPrefix(got, c.again) {
					t.Errorf("%s: run %d replied %s, want %s", c.what, runs, got, c.again)
				}
			}
		}
	})
}
