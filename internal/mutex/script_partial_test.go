package mutex_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/kind"
	"relock/internal/mutex"
	"relock/internal/script"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
)

// fairEntry is an entry of a fair lock in the line: of the owner A1, and the session A, which is taken for alive
// for so many ms.
const fairEntry = "f0001250000500000001A1"

// namedEntry is one of the owner ann, with the id of its hold.
const namedEntry = "i0001250000500000001A0123456789abcdef0123456789abcdefann"

// fairCommands are the commands of a fair lock, of which each names the keys that it uses.
func fairCommands() map[string]script.Command {
	p := mutex.NewFair(names("x"), mutex.Fencing{Fenced: true})
	place := &waiting.RunAttempt{Entry: fairEntry, Last: 1, Waiting: 1}
	joins := &waiting.RunAttempt{Entry: fairEntry[:len(fairEntry)-1] + "2", Join: fairEntry, Last: 2, Waiting: 1, Joined: 2}
	lines := kind.Line{Named: true, Head: fairEntry[:20]}
	return map[string]script.Command{
		"a waiter":          p.Acquire(&kind.Op{Owner: "A1", Lease: time.Minute, Request: kind.Request{Tokens: 1}, Run: place}),
		"one that joins":    p.Acquire(&kind.Op{Owner: "A2", Lease: time.Minute, Request: kind.Request{Tokens: 1}, Run: joins}),
		"a named waiter":    p.Acquire(&kind.Op{Owner: "ann", ID: "i", Lease: time.Minute, Request: kind.Request{Tokens: 1}, Run: &waiting.RunAttempt{Entry: namedEntry, Last: 1, Waiting: 1}}),
		"TryLock":           p.Acquire(&kind.Op{Owner: "A3", Lease: time.Minute, Request: kind.Request{Tokens: 1}, Line: kind.Line{Head: kind.InTurn}}),
		"TryLock by name":   p.Acquire(&kind.Op{Owner: "ann", ID: "i", Lease: time.Minute, Line: kind.Line{Head: kind.Reenter}}),
		"a waiter leaves":   p.Release(&kind.Op{Owner: "A1", All: true, Private: true, Line: lines}),
		"a release":         p.Release(&kind.Op{Owner: "A9", All: true, Private: true, Line: kind.Line{Named: true}}),
		"a release by id":   p.Release(&kind.Op{Owner: "A9", Private: true, ByIDs: true, Ending: kind.Ending{Ends: []string{"i"}, Keep: time.Second}, Line: kind.Line{Named: true}}),
		"a look":            p.Look([]string{fairEntry}),
		"a forced unlock":   p.ForceUnlock(&kind.Force{Owners: []string{"A9"}, ID: "r", Remembered: time.Minute}),
		"a count":           p.Waiters(0),
		"an entry is taken": p.Dismiss(names("x"), fairEntry[:20], "A1", true),
	}
}

// Whatever is left of the keys, every script answers. An error is WRONGTYPE, and no key but the token is left
// without an end (R20).
func TestScriptsAnswerOnAnyPartialState(t *testing.T) {
	now := func(s *redistest.Server) string {
		clock, err := s.Do(t, "TIME").AsStrSlice()
		locktest.Must(t, err)
		return clock[0] + "000"
	}
	const lock, line, ids, token, mark = "x", "relock_line1:{x}", "relock_holds:{x}", "redisson_lock_token:{x}", "relock_forced:{x}:r"
	locks := []string{"", "SET x s", "HSET x A9 1;PEXPIRE x 60000", "HSET x A1 1;PEXPIRE x 1000", "HSET x other 2;PEXPIRE x 60000", "HSET x ann text;PEXPIRE x 60000"}
	fresh := "ZADD " + line + " 5 " + fairEntry + ";PEXPIRE " + line + " 60000"
	lines := []string{"", "SET " + line + " s", fresh, fresh + ";ZADD " + line + " ALIVE sA 4850000000000001 #" + fairEntry, "ZADD " + line + " ALIVE sA;PEXPIRE " + line + " 60000"}
	others := []string{"", "SET " + ids + " s", "SADD " + ids + " i;PEXPIRE " + ids + " 60000", "SET " + token + " text", "HSET " + token + " f v", "SET " + token + " 7"}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		commands := fairCommands()
		for _, first := range locks {
			for _, second := range lines {
				for _, third := range others {
					for what, cmd := range commands {
						s.FlushAll(t)
						for _, words := range strings.Split(first+";"+second+";"+third, ";") {
							if words == "" {
								continue
							}
							ms, err := strconv.ParseInt(now(s), 10, 64)
							locktest.Must(t, err)
							words = strings.ReplaceAll(words, "ALIVE", strconv.FormatInt(5e15-ms-60_000, 10))
							locktest.Must(t, s.Do(t, strings.Fields(words)...).Error())
						}
						eval := append([]string{"EVAL", cmd.Script.Source(), strconv.Itoa(len(cmd.Keys))}, cmd.Keys...)
						err := s.Do(t, append(eval, cmd.Args...)...).Error()
						if err != nil && !strings.Contains(err.Error(), "WRONGTYPE") {
							t.Fatalf("%s with %q, %q, %q: %v", what, first, second, third, err)
						}
						for _, key := range []string{lock, line, ids, mark} {
							made := !strings.Contains(first+";"+second+";"+third, "SET "+key+" s")
							if ttl, err := s.Do(t, "PTTL", key).AsInt64(); err != nil || made && ttl == -1 {
								t.Fatalf("%s with %q, %q, %q leaves %s without an end: %s", what, first, second, third, key, locktest.Describe(t, s))
							}
						}
					}
				}
			}
		}
	})
}
