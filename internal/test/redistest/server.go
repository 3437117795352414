package redistest

import (
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// Server is one fresh standalone Redis: miniredis or a real redis-server. Its
// methods are safe for concurrent use.
type Server struct {
	// Addr is the server's host:port. It stays the same over Restart.
	Addr string
	// Mini is the miniredis behind this server; nil for a real one.
	Mini *miniredis.Miniredis

	bubble       *bubble // the way to Mini in a bubble; nil outside of one
	besideBubble bool    // the same test runs in a bubble too

	start func() (*process, error) // of a real server: on the same port each time

	mu    sync.Mutex
	proc  *process       // nil for miniredis, and when the test has ended
	spare *spare         // what goes on to the next test; nil for a server that ends with this one
	port  *reservation   // of a server that is down, and may come back
	admin rueidis.Client // for Do; nil until used
}

// Mini starts a miniredis. Its TTLs run by the wall clock.
func Mini(tb testing.TB) *Server {
	tb.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	for try := 1; ; try++ {
		port, err := freePort()
		if err == nil {
			err = m.StartAddr(address(port))
		}
		if err == nil {
			break
		}
		if try == startTries {
			tb.Fatalf("start miniredis: %v", err)
		}
	}
	return begun(tb, &Server{Addr: m.Addr(), Mini: m})
}

// BubbleMini makes a miniredis for the synctest bubble that it is called in, for tests that need
// several: EachBubble brings one. It lives by the
// bubble's clock and is reached over connections in memory, for a goroutine that waits for
// the network would keep the clock from going on.
func BubbleMini(tb testing.TB) *Server {
	tb.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	return begun(tb, &Server{Addr: "bubble", Mini: m, bubble: &bubble{mini: m}})
}

// begun returns a server that has just been started, with the scripts that it is to know, and
// ends it with the test.
func begun(tb testing.TB, s *Server) *Server {
	tb.Helper()
	tb.Cleanup(func() { s.end(tb.Failed()) })
	if err := s.warm(); err != nil {
		tb.Fatalf("load the scripts: %v", err)
	}
	return s
}

// Real returns a redis-server that keeps nothing on disk and has no keys. The arguments are
// added to its command line, such as "--notify-keyspace-events", "Ex". Without a
// server program the test is skipped, or fails; see the package comment.
//
// A server without arguments may have served an earlier test, unless that has killed, restarted
// or paused it. It has the configuration, the users and the scripts of a server that has just
// been started, and no clients.
func Real(tb testing.TB, args ...string) *Server {
	tb.Helper()
	path := binary(tb)
	if len(args) > 0 {
		return startProgram(tb, path, tb.TempDir(), args...)
	}
	sp := takeSpare()
	if sp == nil {
		dir := spareDir()
		if dir == "" {
			return startProgram(tb, path, tb.TempDir())
		}
		s := startProgram(tb, path, dir)
		s.spare = newSpare(s, dir)
		return s
	}
	s := &Server{Addr: sp.addr, proc: sp.proc, start: sp.start, spare: sp}
	tb.Cleanup(func() { s.end(tb.Failed()) })
	return s
}

// realSyncing is Real for a server that others wait for while it syncs what it writes.
func realSyncing(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return startProgram(tb, binary(tb), syncDir(tb), args...)
}

// Old starts a redis-server of before Redis 6.2, which nothing of this module can work with. Its
// path stands in RELOCK_OLD_REDIS_SERVER; without one the test is skipped.
func Old(tb testing.TB) *Server {
	tb.Helper()
	path := os.Getenv("RELOCK_OLD_REDIS_SERVER")
	if path == "" {
		tb.Skip("SKIPPED, no Redis of before 6.2: RELOCK_OLD_REDIS_SERVER is not set")
	}
	v, err := versionOf(path)
	if err != nil || v.AtLeast(6, 2) {
		tb.Fatalf("RELOCK_OLD_REDIS_SERVER=%s is %+v, %v; it must be older than 6.2", path, v, err)
	}
	return startProgram(tb, path, tb.TempDir())
}

// startProgram starts a server program in dir that keeps nothing on disk.
func startProgram(tb testing.TB, path, dir string, args ...string) *Server {
	tb.Helper()
	return startReal(tb, func(port int) (*process, error) {
		line := []string{
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no",
		}
		return spawn(path, dir, port, append(line, args...)...)
	})
}

// startReal starts a server on a free port with run, which it calls again with
// another port when the first is taken in the meantime.
func startReal(tb testing.TB, run func(port int) (*process, error)) *Server {
	tb.Helper()
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			tb.Fatal(err)
		}
		proc, err := run(port)
		if err == nil {
			s := &Server{Addr: address(port), proc: proc}
			s.start = func() (*process, error) { return run(port) }
			return begun(tb, s)
		}
		if try == startTries {
			tb.Fatal(err)
		}
		tb.Logf("try %d: %v", try, err)
	}
}

// IsMini reports whether the server is a miniredis.
func (s *Server) IsMini() bool { return s.Mini != nil }
