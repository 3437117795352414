package main_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
)

// ofCommands matches the keys of doctor's check of commands.
func ofCommands(cmd []string) bool {
	return len(cmd) > 1 && strings.HasPrefix(cmd[1], "relock-doctor:") && strings.HasSuffix(cmd[1], ":commands")
}

// The check of commands does not wait for one answer before it sends the next command, since a Redis
// that is far away would not be done in time.
func TestDoctorSendsItsCommandsAtOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t, "--appendonly", "yes")
	p := faulttest.New(t, s.Addr)
	seen, release := p.HoldReply(ofCommands)
	defer release()
	ended := make(chan result, 1)
	go func() { ended <- cli{t, "redis://" + p.Addr()}.run("doctor") }()
	select {
	case <-seen:
	case <-time.After(patience):
		t.Fatal("doctor has not tried any command")
	}
	eventually(t, "the last command to be sent while the first has no answer", func() bool {
		return slices.ContainsFunc(p.Sent(), func(cmd []string) bool { return cmd[0] == "ZREMRANGEBYSCORE" })
	})
	release()
	if r := <-ended; r.code != 0 || !strings.Contains(r.out, "all that locks run in scripts are allowed") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
}

// What the check of commands takes is not taken from the time for a session.
func TestDoctorGivesASessionItsOwnTime(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	s := redistest.Real(t, "--appendonly", "yes")
	p := faulttest.New(t, s.Addr)
	for i := range time.Duration(32) { // without a silence that the client takes for the end of the connection
		p.DelayReply((i+1)*100*time.Millisecond, ofCommands)
	}
	p.DelayReply(2*time.Second, func(cmd []string) bool { return strings.HasPrefix(cmd[0], "EVAL") }) // of the session
	all := examine(cli{t, "redis://" + p.Addr()}, 0)                                                  // 3.3 s and 2 s, of 5 s each
	for _, check := range []string{"commands", "mutex"} {
		if l, text := level(t, all, check); l != "ok" {
			t.Errorf("%s: %s %s", check, l, text)
		}
	}
}
