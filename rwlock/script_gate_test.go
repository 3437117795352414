package rwlock_test

import (
	"fmt"
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

// The readers that wait, in gate.lua: READERS and OPENED, and a moment long ago.
const readersScore, openedScore, longAgo = 8_800_000_000_000_000, 8_500_000_000_000_000, 1_000_000

// gateStep runs a script where the line has these readers, by when they came, and what else is said in a set-up.
type gateStep struct {
	name         string
	setup        []string
	before       string // Lua
	script       string
	keys, args   []string
	reply        string   // its elements but for the time, and of a reply with five the position; ms is a long time
	left         string   // of the line, in its order, without times
	called, told []string // the entries that were called, and what was said on the lock's channel
}

// gateEars are the channels on which its messages come: of two sessions, and of the lock.
type gateEars map[string]<-chan string

func newGateEars(t *testing.T, s *redistest.Server) gateEars {
	ears := gateEars{}
	for _, channel := range gateChannels {
		ears[channel] = locktest.Hears(t, s, channel)
	}
	return ears
}

var gateChannels = []string{"s:me", "s:you", "ch"}

// manyMs is a time to live of those that the set-ups give, some ms later.
var manyMs = regexp.MustCompile(`\b[89][0-9]{3,}\b`)

func (c *gateStep) run(t *testing.T, s *redistest.Server, ears gateEars) {
	s.FlushAll(t)
	for _, cmd := range setup(c.setup...) {
		must(t, s.Do(t, cmd...).Error())
	}
	cmd := append([]string{"EVAL", c.before + rwlock.ScriptSources()[c.script], strconv.Itoa(len(c.keys))}, c.keys...)
	got, err := s.Do(t, append(cmd, c.args...)...).ToAny()
	must(t, err)
	switch list, _ := got.([]any); {
	case c.script == "acquire_read" && len(list) > 2:
		got = append(list[:2:2], list[3:]...)
	case len(list) == 5:
		got = list[:4]
	}
	if got := manyMs.ReplaceAllString(fmt.Sprint(got), "ms"); got != c.reply {
		t.Errorf("%s: it replied %v, want %s", c.name, got, c.reply)
	}
	left := ""
	if d := locktest.Describe(t, s); strings.Contains(d, "W<") {
		_, left, _ = strings.Cut(d, "W<")
		left, _, _ = strings.Cut(left, ">")
	}
	if left != c.left {
		t.Errorf("%s: the line has %q, want %q", c.name, left, c.left)
	}
	var called, told []string
	for _, channel := range gateChannels {
		must(t, s.Do(t, "PUBLISH", channel, "end").Error())
		for {
			m := locktest.Get(t, ears[channel], 5*time.Second, "what was published")
			if m == "end" {
				break
			}
			if parts := strings.SplitN(m, ":", 4); len(parts) == 4 && parts[0] == "called" {
				if ms, err := strconv.Atoi(parts[1]); err == nil && c.before != "" && ms > 6 && ms < 1000 {
					parts[1] = "1000" // some ms have passed since the gate was opened
				}
				called = append(called, parts[1]+" "+strings.TrimSuffix(parts[3], "lock"))
			} else {
				told = append(told, m)
			}
		}
	}
	if !slices.Equal(called, c.called) || !slices.Equal(told, c.told) {
		t.Errorf("%s: called were %q, told was %q; want %q, %q", c.name, called, told, c.called, c.told)
	}
}

func readersAt(since int64, who string) string {
	return fmt.Sprint("ZADD W ", readersScore+since, " ", reads, who)
}

// readersOf are those of a session that is named like you, which came a moment later.
func readersOf(you string) string {
	return strings.Replace(readersAt(longAgo+2, you), reads, yoursR, 1)
}

var gateOpened = fmt.Sprint("ZADD W ", openedScore+longAgo, " t")

// justOpened opens the gate in the moment in which the script runs.
var justOpened = fmt.Sprintf("redis.call('ZADD', KEYS[3], string.format('%%.0f', %d + redis.call('TIME')[1] * 1000 + math.floor(redis.call('TIME')[2] / 1000)), 't') ", openedScore)

// farReader is one that the lock is left to for 999 ms once it was called: also on a busy machine these are not over when
// the script asks.
var farReader = strings.Replace(readersOf("you"), yoursR, farR, 1)

const (
	farR      = "R99912500001000" + "00003"
	meR, youR = reads + "me", yoursR + "you"
	yoursR    = "R00012500001000" + "00003"
	youWait   = "ZADD W 200 " + yours + "you 4990000000000000 syou" // a writer, which is alive for a long time yet
)

// Readers stand in the line while a writer is inside or waits, and come in when one has left since they came.
func TestReadersStandInTheLine(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ears := newGateEars(t, s)
		readBeside := []string{"HSET lock mode read you 1", youLive, forever, marked, "PEXPIRE W 9000"}
		for _, c := range []gateStep{
			{name: "behind a writer inside, the first", setup: []string{stranger, forever, readersAt(longAgo, "me")},
				reply: fmt.Sprint("[0 ms ", longAgo, " you ms]"), left: "sme " + meR},
			{name: "behind a writer inside, not the first", setup: []string{stranger, forever, readersAt(longAgo, "me"), readersAt(longAgo-1, "ma"), readersAt(longAgo-2, "mo")},
				reply: fmt.Sprint("[0 -1 ", longAgo, " you ms]"), left: "sme " + reads + "mo " + reads + "ma " + meR},
			{name: "behind one that waits, for those who came before the gate was opened come in", setup: append(readBeside, gateOpened, readersAt(longAgo+1, "me"), readersAt(longAgo, "ma")),
				reply: fmt.Sprint("[0 ms ", longAgo+1, "]"), left: "sme m t " + reads + "ma " + meR},
			{name: "behind a writer inside, the second", setup: []string{stranger, forever, readersAt(longAgo, "me"), readersAt(longAgo-1, "ma")},
				reply: fmt.Sprint("[0 ms ", longAgo, " you ms]"), left: "sme " + reads + "ma " + meR},
			{name: "no others come in with a writer's own read", setup: []string{writer, ttl, gateOpened, readersOf("you")},
				reply: "[1 1 1]", left: "t " + youR},
			{name: "it is called by the first one that comes in", setup: []string{readersAt(longAgo+1, "me"), readersOf("you"), gateOpened},
				reply: "[1 1 1]", left: "t " + youR, called: []string{"0 " + youR}},
		} {
			c.script, c.keys, c.args = "acquire_read", acqR, lineR
			c.run(t, s, ears)
		}
	})
}

// A writer that leaves, or gives up, calls the readers that stand in the line; and the next writer, for later.
func TestAWriterThatLeavesOpensTheGate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ears := newGateEars(t, s)
		beside, all := []string{writer, ttl, readersAt(longAgo, "me")}, []string{"1", "0"}
		for _, c := range []gateStep{
			{name: "it leaves", setup: beside, script: "release_write", keys: relW, args: endingW(endAll, "", ""),
				reply: "[0 1 1]", left: "t " + meR, called: []string{"0 " + meR}, told: all},
			{name: "a writer waits", setup: append(beside, youWait), script: "release_write", keys: relW, args: endingW(endAll, "", ""),
				reply: "[0 1 1 0]", left: yours + "you syou c m t " + meR, called: []string{"0 " + meR, "6 " + yours + "you"}, told: all},
			{name: "a reader was late at the gate before", setup: append(beside, gateOpened), script: "release_write", keys: relW, args: endingW(endAll, "", ""),
				reply: "[0 1 1]", left: "t " + meR, called: []string{"0 " + meR}, told: all},
			{name: "a waiting writer gives up", setup: []string{"HSET lock mode read you 1", youLive, forever, marked, readersAt(longAgo, "me"), "ZADD W 100 " + mine + "me"},
				script: "release_write", keys: relW, args: endingW(endAll, mine, ""), reply: "[0 0 -1]", left: "t " + meR,
				called: []string{"0 " + meR}, told: []string{"1"}},
			{name: "the last reader, and another one is to come", setup: []string{reader, meLives, ttl, youWait, marked, farReader},
				before: justOpened, script: "release_read", keys: relR, args: endAll, reply: "[0 1 1 0]", left: yours + "you syou c m t " + farR + "you",
				called: []string{"1000 " + yours + "you"}, told: all[1:]},
			{name: "a reader that waits gives up", setup: []string{stranger, forever, readersAt(longAgo, "me"), readersOf("you")},
				script: "release_read", keys: relR, args: ending("2"+reads, "0", "0", "0", "0"), reply: "[0 0 -1]", left: youR},
			{name: "the lock is left standing", setup: append(beside, readersOf("you")), script: "leave_write", keys: leaveW[:3],
				args: args("me", "5000", "1", "ch", "PUBLISH", "s:"), reply: "[1 1 -1]", left: meR + " " + youR,
				called: []string{"5001 " + meR, "5001 " + youR}, told: all},
			{name: "a writer is forced out", setup: append(beside, readersOf("you")), script: "force_unlock", keys: withM, args: force,
				reply: "[me]", left: "t " + meR + " " + youR, called: []string{"0 " + meR, "0 " + youR}, told: all},
			{name: "the second one is told", setup: []string{stranger, forever, gateOpened, readersAt(longAgo, "mo"), readersAt(longAgo+1, "me"), readersAt(longAgo+1, "ma"), readersOf("you")},
				script: "release_read", keys: relR, args: ending("2"+reads, "0", "0", "0", "0"), reply: "[0 0 -1]",
				left: "t " + reads + "mo " + reads + "ma " + youR, called: []string{"0 " + youR}},
			{name: "a mark stays", setup: []string{"HSET lock mode read you 1", youLive, forever, marked, readersAt(longAgo, "me")},
				script: "release_read", keys: relR, args: ending("2"+reads, "0", "0", "0", "0"), reply: "[0 0 -1]", left: "m"},
		} {
			c.run(t, s, ears)
		}
	})
}

// More readers are late than the gate calls at once: it opens to those behind them too.
func TestTheGateOpensBehindThoseWhoAreLate(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		c := gateStep{name: "many are late", setup: []string{writer, ttl, gateOpened, readersAt(longAgo+1, "me")},
			script: "release_write", keys: relW, args: endingW(endAll, "", ""),
			reply: "[0 1 1]", left: "t", called: []string{"0 " + meR}, told: []string{"1", "0"}}
		for i := range 300 { // who were called when the gate was opened before
			you := fmt.Sprintf("you%03d", i)
			c.setup = append(c.setup, strings.Replace(readersAt(longAgo, you), reads, yoursR, 1))
			c.left += " " + yoursR + you
			c.called = append(c.called, "0 "+yoursR+you)
		}
		c.left += " " + meR
		c.run(t, s, newGateEars(t, s))
	})
}
