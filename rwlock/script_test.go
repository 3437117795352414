package rwlock_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rwlock"
)

func TestScriptsAreSafeToRunTwice(t *testing.T) {
	locktest.RunScripts(t, rwlock.ScriptSources(), allCases)
}

// A server that takes no writes has said nothing about a lock (11.1).
func TestScriptsPassErrorsOn(t *testing.T) {
	locktest.RefuseWrites(t, rwlock.ScriptSources(), allCases)
}

// While the slot of a lock moves a script is refused, or does what it does elsewhere.
func TestScriptsWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	locktest.WhileASlotMoves(t, rwlock.ScriptSources(), allCases)
}

// However many readers have died, a writer gets in at once, and the last reader that leaves
// tells it (R25).
func TestScriptsBuryManyReaders(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for script, c := range map[string]struct{ keys, args []string }{
			"acquire_write": {acqW, firstW}, "release_read": {relR, endAll},
		} {
			s.FlushAll(t)
			lock, readers := []string{"HSET", "lock", "mode", "read", "me", "1"}, []string{"ZADD", "R", "1", "me"}
			if script == "release_read" {
				readers[2] = "9999999999999"
			}
			for i := range 1200 {
				lock, readers = append(lock, "dead"+strconv.Itoa(i), "1"), append(readers, "1", "dead"+strconv.Itoa(i))
			}
			for _, cmd := range [][]string{lock, readers, {"PEXPIRE", "lock", "60000"}} {
				if err := s.Do(t, cmd...).Error(); err != nil {
					t.Fatal(err)
				}
			}
			cmd := append([]string{"EVAL", rwlock.ScriptSources()[script], strconv.Itoa(len(c.keys))}, c.keys...)
			reply, err := s.Do(t, append(cmd, c.args...)...).AsIntSlice()
			if granted := script == "acquire_write"; err != nil || granted && reply[0] != 1 || !granted && (reply[0] != 0 || reply[1] != 1) {
				t.Errorf("%s replied %v, %v", script, reply, err)
			}
			want := map[string]string{"acquire_write": "H(wa) lock{me:write:1 mode:write}", "release_read": ""}[script]
			if got := locktest.Describe(t, s); got != want {
				t.Errorf("%s left %.200s, want %s", script, got, want)
			}
		}
	})
}

// Where nobody knows who listens to the lock's channel the next writer is called.
func TestAReleaseThatCannotCountListenersCallsTheNextWriter(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, cmd := range setup(writer, ttl, "ZADD W 200 "+yours+"you 4990000000000000 syou", marked) {
			must(t, s.Do(t, cmd...).Error())
		}
		cmd := append([]string{"EVAL", rwlock.ScriptSources()["release_write"], strconv.Itoa(len(relW))}, relW...)
		must(t, s.Do(t, append(cmd, uncounted(endingW(endAll, "", ""))...)...).Error())
		if got, want := locktest.Describe(t, s), "W<"+yours+"you syou c>"; got != want {
			t.Errorf("it left %s, want %s", got, want)
		}
	})
}

// A slow taker that is passed by hears that it stands first all the same, whatever has made another the one that is
// called: no other session hears when Redisson's clients leave.
func TestASlowWriterThatIsPassedByHearsThatItIsTheFirst(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		hears := locktest.Hears(t, s, "s:abc")
		locktest.Hears(t, s, "s:you")
		slow := "U000125000600000" + "0003abc"                                              // alive for a minute after each sign of life
		heard := strconv.FormatInt(5_000_000_000_000_000-time.Now().UnixMilli()-30_000, 10) // which was half a minute ago
		line := "ZADD W 100 " + slow + " " + heard + " sabc 7002999999999999 pabc 200 " + yours + "you 4990000000000000 syou"
		for what, c := range map[string]struct {
			script string
			keys   []string
			args   []string
			state  [][]string
		}{
			"a writer leaves the lock to a called one": {"release_write", relW, uncounted(endingW(endAll, "", "")), setup(writer, ttl, line)},
			"a writer that had nothing calls one":      {"release_write", relW, uncounted(endingW(endAll, "", "")), setup(line)},
			"the last but for a reader of Redisson's":  {"release_read", relR, endAll, setup("HSET lock mode read me 1 java 1", meLives, ttl, line)},
			"a writer further behind asks": {"acquire_write", acqW, lineW,
				setup(line, "ZADD W 300 "+mine+"me 4990000000000000 sme")},
			"a writer that waited leaves the line": {"release_write", relW, endingW(endAll, mine, ""),
				setup(stranger, ttl, line, "ZADD W 50 "+mine+"me 4990000000000000 sme")},
		} {
			s.FlushAll(t)
			for _, cmd := range c.state {
				must(t, s.Do(t, cmd...).Error())
			}
			cmd := append([]string{"EVAL", rwlock.ScriptSources()[c.script], strconv.Itoa(len(c.keys))}, c.keys...)
			must(t, s.Do(t, append(cmd, c.args...)...).Error())
			must(t, s.Do(t, "PUBLISH", "s:abc", "end").Error())
			var got []string
			for text := ""; text != "end"; {
				text = locktest.Get(t, hears, 10*time.Second, what)
				got = append(got, text)
			}
			if len(got) != 2 || !strings.HasPrefix(got[0], "called:") || !strings.HasSuffix(got[0], ":"+slow+"lock") {
				t.Errorf("%s: it heard %q, want one call; left: %s", what, got, locktest.Describe(t, s))
			}
		}
	})
}

// A writer that comes in front of writers that were passed over is the first: it is told when to ask, and a session that
// keeps the lock hears that others want it.
func TestAWriterInFrontOfThosePassedOverIsTheFirst(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		hears := locktest.Hears(t, s, "s:K")
		first := slices.Clone(lineW)
		first[9] = "0" // it has not been there
		for what, c := range map[string]struct {
			state []string
			at    string // of the other writer
			first bool
		}{
			"behind a writer":                       {args("HSET lock mode write K:01:write 1", ttl), "200", false},
			"in front, while a writer is inside":    {args("HSET lock mode write K:01:write 1", ttl), "2400000000000200", true},
			"behind another, while readers read":    {args("HSET lock mode read you 1", youLive, ttl), "200", false},
			"in front of it, while readers read":    {args("HSET lock mode read you 1", youLive, ttl), "2400000000000200", true},
			"in front, while a plain lock is there": {args("HSET lock K:01 1", ttl), "2400000000000200", true},
		} {
			s.FlushAll(t)
			for _, cmd := range setup(append(c.state, "ZADD W "+c.at+" "+yours+"you 4990000000000000 syou")...) {
				must(t, s.Do(t, cmd...).Error())
			}
			cmd := append([]string{"EVAL", rwlock.ScriptSources()["acquire_write"], strconv.Itoa(len(acqW))}, acqW...)
			reply, err := s.Do(t, append(cmd, first...)...).AsIntSlice()
			must(t, err)
			if told := reply[1] > 0; reply[0] != 0 || len(reply) != 4 || told != c.first {
				t.Errorf("%s: it was told %v", what, reply)
			}
			must(t, s.Do(t, "PUBLISH", "s:K", "end").Error())
			wants := c.first && !slices.Contains(c.state, youLive)
			if got := locktest.Get(t, hears, 10*time.Second, what); wants != (got == "wanted:4:K:01lock") {
				t.Errorf("%s: the session of the owner hears %q", what, got)
			} else if wants {
				locktest.Get(t, hears, 10*time.Second, "the end")
			}
		}
	})
}

// A release shortly before a writer that polls comes again leaves the lock to it, and that of a writer to a reader that
// polls: the first of the line is called for when that has had its time. A newcomer that finds nobody in the line waits
// so long too.
func TestTheLockIsLeftToAPollerThatHasBooked(t *testing.T) {
	const now = `local t = redis.call('TIME')
redis.call('ZADD', KEYS[3], string.format('%.0f', -9e15 + (t[1] * 1000 + math.floor(t[2] / 1000)) * 1000 + FROM * 1000 + 900), 'WHO')
`
	newcomer := slices.Clone(lineW)
	newcomer[9] = "0"
	other := "ZADD W 200 V" + yours[1:] + "you 4990000000000000 syou"
	called := `called:[1-9]\d\d:` // in 903 ms, less what a busy machine takes for the script
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		hears := locktest.Hears(t, s, "s:you")
		for _, c := range []struct {
			what, script string
			keys, args   []string
			state        [][]string
			who, from    string // the booking, and in how many ms it begins
			hears, left  string
		}{
			{"a writer leaves", "release_write", relW, endingW(endAll, "", ""), setup(writer, ttl, other), "bx", "0", called, "W<V" + yours[1:] + "you syou c>"},
			{"a writer leaves before that", "release_write", relW, endingW(endAll, "", ""), setup(writer, ttl, other), "bx", "5000", "granted:", "W<bx syou> lock{mode:write you:write:1}"},
			{"a writer leaves behind it", "release_write", relW, endingW(endAll, "", ""), setup(writer, ttl, other), "bx", "-5000", "granted:", "W<syou> lock{mode:write you:write:1}"},
			{"the last reader leaves", "release_read", relR, endAll, setup(reader, meLives, ttl, other), "bx", "0", called, "W<V" + yours[1:] + "you syou c>"},
			{"a writer leaves, and a reader comes", "release_write", relW, endingW(endAll, "", ""), setup(writer, ttl, other), "b:x", "0", called, "W<V" + yours[1:] + "you syou c>"},
			{"the last reader leaves, and another one comes", "release_read", relR, endAll, setup(reader, meLives, ttl, other), "b:x", "0", "granted:", "W<b:x syou> lock{mode:write you:write:1}"},
			{"a writer comes, and a reader", "acquire_write", acqW, newcomer, nil, "b:x", "0", "", "W<" + mine + "me sme c>"},
			{"a writer comes", "acquire_write", acqW, newcomer, nil, "bx", "0", "", "W<" + mine + "me sme c>"},
			{"a writer comes before that", "acquire_write", acqW, newcomer, nil, "bx", "5000", "", "H(wa) W<bx> lock{me:write:1 mode:write}"},
		} {
			s.FlushAll(t)
			for _, cmd := range c.state {
				must(t, s.Do(t, cmd...).Error())
			}
			cmd := append([]string{"EVAL", strings.NewReplacer("FROM", c.from, "WHO", c.who).Replace(now) + rwlock.ScriptSources()[c.script], strconv.Itoa(len(c.keys))}, c.keys...)
			must(t, s.Do(t, append(cmd, c.args...)...).Error())
			if c.hears != "" {
				if got := locktest.Get(t, hears, 10*time.Second, c.what); !regexp.MustCompile("^" + c.hears).MatchString(got) {
					t.Errorf("%s: the first of the line hears %q, want %s", c.what, got, c.hears)
				}
			}
			if got := locktest.Describe(t, s); got != c.left {
				t.Errorf("%s: it left %s, want %s", c.what, got, c.left)
			}
		}
	})
}

// A writer that has the lock while its entry still stands in the line gives both up: the next one has the lock.
func TestAWriterThatLeavesIsNotGivenTheLockAnew(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		locktest.Hears(t, s, "s:me")
		locktest.Hears(t, s, "s:you")
		head, next := "V"+mine[1:], "V"+yours[1:]
		for _, cmd := range setup(writer, ttl, "ZADD W 100 "+head+"me 200 "+next+"you 4990000000000000 sme 4990000000000000 syou") {
			must(t, s.Do(t, cmd...).Error())
		}
		cmd := append([]string{"EVAL", rwlock.ScriptSources()["release_write"], strconv.Itoa(len(relW))}, relW...)
		must(t, s.Do(t, append(cmd, endingW(endAll, head, "")...)...).Error())
		if got, want := locktest.Describe(t, s), "lock{mode:write you:write:1}"; got != want {
			t.Errorf("it left %s, want %s", got, want)
		}
	})
}

func TestScriptHeaders(t *testing.T) { locktest.CheckHeaders(t, rwlock.ScriptSources()) }
