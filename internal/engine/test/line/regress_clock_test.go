package line_test

import (
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The clock of Redis has leapt back by an hour while a lock was left to a session that was called, which has died
// since: the lock is not left to it for an hour. The line is written as line.lua says, for a clock cannot be set.
func TestALeapOfTheClockLeavesNoLockToADeadSession(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses := dial(t, s, rlock.Config{})
		clock, err := s.Do(t, "TIME").AsStrSlice()
		must(t, err)
		seconds, err := strconv.ParseInt(clock[0], 10, 64)
		must(t, err)
		now := seconds * 1000
		later := now + time.Hour.Milliseconds()
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		must(t, s.Do(t, "ZADD", locktest.LineOf("x"), number(now*1000), "g0001250000500000004dead:1",
			number(5e15-later), "sdead", number(8e15+later), "c").Error())
		must(t, s.Do(t, "PEXPIRE", locktest.LineOf("x"), "600000").Error())
		got := locktest.Get(t, locktest.GoLock(rlock.New(ses, "x"), within(t, 10*time.Second)), 15*time.Second, "Lock")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	})
}
