package redistest

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"relock/internal/engine"
)

// Main runs the tests of a package with the invariants of the machine asserted at each step,
// and fails when goroutines are left over. It runs up to 32 parallel tests at once (6 with the
// race detector), or as many as the flag -parallel says. Call it from TestMain; it does not return.
//
// Servers that the tests start know the scripts in the folders given, as a server in use
// does: a command that a test counts, holds back or loses is then the one that does the work,
// and not one that Redis answers with NOSCRIPT. A server that is restarted knows none.
func Main(m *testing.M, scripts ...string) {
	flag.Parse()
	know(scripts)
	// Benchmarks measure what users run, which does not look after itself.
	var run goleak.TestingM = m
	if f := flag.Lookup("test.bench"); f == nil || f.Value.String() == "" {
		run = pooled{m}
		engine.CheckInvariants(true)
		// miniredis leaves a lot of garbage for each script, while little is in use: it is
		// collected at every few MiB, and that was an eighth of what the tests cost.
		debug.SetGCPercent(garbage)
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	// rueidis keeps two goroutines of a cluster client for a while, also when the client has been
	// closed in the meantime: one closes the connections that a change of the cluster left over,
	// after 5 s, and one spaces the readings of the topology, after 1 s at most.
	goleak.VerifyTestMain(run,
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// Each runs fn as two subtests, "miniredis" and "redis", each on a fresh server, and
// returns when both have ended. No other test of the package runs meanwhile, so fn may
// count goroutines and keep all cores busy. The second subtest is skipped when there is no
// real server to be had, see the package comment; with -short it is also skipped when the
// first one has taken a fifth of a second or more.
func Each(t *testing.T, fn func(t *testing.T, s *Server)) {
	began := time.Now()
	t.Run("miniredis", func(t *testing.T) { fn(t, Mini(t)) })
	slow := time.Since(began) >= Quick
	t.Run("redis", func(t *testing.T) {
		if slow {
			SkipShort(t)
		}
		fn(t, Real(t))
	})
}

// EachParallel is Each for tests that wait: t becomes a parallel test, and the subtests run
// at the same time (but not with -short, which has to know how long the first one takes).
// EachParallel returns before they have ended, so nothing may come after it, and fn must
// not write to variables of its caller.
func EachParallel(t *testing.T, fn func(t *testing.T, s *Server)) {
	t.Parallel()
	if testing.Short() {
		Each(t, fn)
		return
	}
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		fn(t, Mini(t))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		fn(t, Real(t))
	})
}

// EachBubble is EachParallel with the miniredis half in a synctest bubble: that half takes
// no time, however long it waits. In it, fn can reach the server only with what s offers
// (Option, Client, Do, Kill, Restart and what builds on them): a proxy or a process would have to
// listen on an address (a proxy made by faulttest.Of does not). Nor can fn call t.Run. With -short
// it is the bubble's clock that tells whether the second half is slow.
//
// A session in a bubble has no direct connection, since that needs a socket. So this is for
// tests that wait for a clock, and not for those of what goroutines do at the same time.
func EachBubble(t *testing.T, fn func(t *testing.T, s *Server)) {
	t.Parallel()
	var took time.Duration
	t.Run("miniredis", func(t *testing.T) {
		bubbles <- struct{}{}
		defer func() { <-bubbles }()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			defer func() { took = time.Since(began) }()
			fn(t, BubbleMini(t))
		})
	})
	t.Run("redis", func(t *testing.T) {
		if took >= Quick {
			SkipShort(t)
		}
		s := Real(t)
		s.besideBubble = true
		fn(t, s)
	})
}

// Quick is the time that the half on miniredis stays below of a test which -short runs on a real
// server too.
const Quick = time.Second / 5

// bubbles has room for as many bubbles as may run at a time. In a bubble nothing waits, so each
// keeps a core busy; other tests need theirs to renew leases in time.
var bubbles = make(chan struct{}, max(1, runtime.NumCPU()/2))

// Rounds returns how often a test repeats what goes wrong at some moments only: n times, or a third of
// that with -short.
func Rounds(n int) int {
	if testing.Short() {
		return n / 3
	}
	return n
}

// SkipShort skips a test that is slow on a real server when the tests are run with -short.
func SkipShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("SKIPPED with -short: slow on a real server")
	}
}
