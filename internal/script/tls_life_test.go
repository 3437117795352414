package script_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/script"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

// A server says something while nothing is asked, be it a ticket, an alert or the end: the connection is made
// anew before a command goes over it, and no call fails.
func TestTLSServerSaysSomethingUnasked(t *testing.T) {
	versions(t, func(t *testing.T, x *secured) {
		r, re := x.runner(t, 30*time.Second)
		wantDirect(t, r, re)
		for i, text := range []string{"\x17\x03\x03\x00\x20", "\x17", "\x15\x03\x03\x00\x02\x01\x00"}[:redistest.Rounds(3)] {
			re.say(t, text)
			redistest.Eventually(t, 10*time.Second, "the connection to be left", func() bool {
				locktest.Must(t, r.Run(t.Context(), appending("x")).Error())
				return re.dials() > 1+i || !r.HasDirect()
			})
			wantDirect(t, r, re)
			if n := x.shakes.Load(); n != int32(2+i) {
				t.Errorf("%d connections, want %d", n, 2+i)
			}
		}
	})
}

// Close while a server takes nothing, or answers nothing: the call ends, and TLS does not wait to say farewell.
func TestTLSCloseBesideASilentServer(t *testing.T) {
	redistest.SkipShort(t)
	versions(t, func(t *testing.T, x *secured) {
		for what, size := range map[string]int{"no answer": 1, "not taken": 64 * sendBuffer} {
			r, re := x.runner(t, 30*time.Second)
			reached, letGo := re.hold(toServer, 0)
			first := goRun(t.Context(), r, strings.Repeat("x", size))
			locktest.Get(t, reached, 10*time.Second, "the command")
			began := time.Now()
			r.Close()
			if err := locktest.Get(t, first, 10*time.Second, "the call"); err == nil || script.Classify(err) != script.Unknown {
				t.Errorf("%s: the error is %v", what, err)
			}
			if d := time.Since(began); d > 4*time.Second { // TLS waits for 5 s
				t.Errorf("%s: it took %v", what, d)
			}
			wantFree(t, r)
			letGo()
		}
	})
}

// The direct connection's handshake is refused: commands go over the other one, and over it once it is not.
func TestTLSRefusedHandshake(t *testing.T) {
	redistest.SkipShort(t)
	versions(t, func(t *testing.T, x *secured) {
		right := x.cfg
		x.cfg = redistest.NewAuthority(t).Client()
		x.cfg.ServerName = right.ServerName
		r, re := x.runner(t, 30*time.Second)
		locktest.Must(t, r.Run(t.Context(), appending("first")).Error())
		if re.dials() != 1 || r.HasDirect() {
			t.Errorf("%d dials; a direct connection: %v", re.dials(), r.HasDirect())
		}
		x.cfg = right
		if !r.RenewLate() {
			t.Error("it is not tried again")
		}
		redistest.Eventually(t, 10*time.Second, "the direct connection", r.HasDirect)
		wantDirect(t, r, re)
	})
}

// The time for the last answer passes while nothing is sent: the connection serves on.
func TestTLSServesAfterAnIdleTime(t *testing.T) {
	redistest.SkipShort(t)
	versions(t, func(t *testing.T, x *secured) {
		const timeout = 2 * time.Second
		r, re := x.runner(t, timeout)
		wantDirect(t, r, re)
		time.Sleep(timeout * 3 / 2) // the time is what this is about
		wantDirect(t, r, re)
		if n := x.shakes.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// Contexts end at any time: what a call says of its command is true, and no command is executed behind a
// later one.
func TestTLSRandomEnds(t *testing.T) {
	redistest.SkipShort(t)
	versions(t, func(t *testing.T, x *secured) {
		for i := range 4 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				r, _ := x.runner(t, 30*time.Second)
				randomEnds(t, x.Server, r, "x"+strconv.Itoa(i), 9)
			})
		}
	})
}
