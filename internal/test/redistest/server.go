package redistest

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// adminTimeout bounds the commands of [Server.Do], which may meet a server that
// has been paused.
const adminTimeout = 10 * time.Second

// Server is one fresh standalone Redis: miniredis or a real redis-server. Its
// methods are safe for concurrent use.
type Server struct {
	// Addr is the server's host:port. It stays the same over Restart.
	Addr string
	// Mini is the miniredis behind this server; nil for a real one.
	Mini *miniredis.Miniredis

	inBubble     bool // Mini has no address and is dialled in memory
	besideBubble bool // the same test runs in a bubble too

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

// bubbleMini makes a miniredis for the synctest bubble that it is called in. It lives by the
// bubble's clock and is reached over connections in memory, for a goroutine that waits for
// the network would keep the clock from going on.
func bubbleMini(tb testing.TB) *Server {
	tb.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	return begun(tb, &Server{Addr: "bubble", Mini: m, inBubble: true})
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

// Option returns the client options that fit this server, and are those that
// relock is to be run with.
func (s *Server) Option() rueidis.ClientOption {
	o := option(s.Addr)
	// miniredis would be taken for a cluster of one node.
	o.ForceSingleClient = true
	if s.inBubble {
		o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return s.Mini.Dial()
		}
	}
	return o
}

// The tests make thousands of connections. So each one's two buffers, and its queue of commands
// (2^queue), are much smaller than by default: half a MiB each, and 1024 commands.
const (
	buffers = 8 << 10
	queue   = 8
)

// option returns the settings that all clients share.
func option(addrs ...string) rueidis.ClientOption {
	return rueidis.ClientOption{
		ReadBufferEachConn:  buffers,
		WriteBufferEachConn: buffers,
		RingScaleEachConn:   queue,
		InitAddress:         addrs,
		AlwaysPipelining:    true,
		PipelineMultiplex:   -1,
		DisableCache:        true,
	}
}

// Client returns a new client of the server, closed when the test ends. Each
// mod may change the options before it is made.
func (s *Server) Client(tb testing.TB, mods ...func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	return newClient(tb, s.Option(), mods)
}

func newClient(tb testing.TB, o rueidis.ClientOption, mods []func(*rueidis.ClientOption)) rueidis.Client {
	tb.Helper()
	for _, mod := range mods {
		mod(&o)
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		tb.Fatalf("new client of %v: %v", o.InitAddress, err)
	}
	tb.Cleanup(c.Close)
	return c
}

// Do sends one command over a separate connection and returns its result, or
// the error of not reaching the server. It waits 10 seconds at most and never
// sends the command twice.
func (s *Server) Do(tb testing.TB, args ...string) rueidis.RedisResult {
	tb.Helper()
	c, err := s.adminClient()
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	// Not the test's context: Do is also used in cleanups.
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	return c.Do(ctx, c.B().Arbitrary(args...).Build())
}

func (s *Server) adminClient() (rueidis.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin == nil {
		o := s.Option()
		o.DisableRetry = true
		c, err := rueidis.NewClient(o)
		if err != nil {
			return nil, err
		}
		s.admin = c
	}
	return s.admin, nil
}

// FlushAll removes all keys.
func (s *Server) FlushAll(tb testing.TB) {
	tb.Helper()
	if err := s.Do(tb, "FLUSHALL").Error(); err != nil {
		tb.Fatalf("FLUSHALL: %v", err)
	}
}

// Keys returns all keys, sorted, but for the records by which sessions say who they are.
func (s *Server) Keys(tb testing.TB) []string {
	tb.Helper()
	return LockKeys(s.sorted(tb, "KEYS", "*"))
}

// LockKeys returns keys without the records of sessions.
func LockKeys(keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasPrefix(key, "relock_session:") })
}

// Channels returns the channels that somebody is subscribed to, sorted. Shard
// channels and patterns are not among them.
func (s *Server) Channels(tb testing.TB) []string {
	tb.Helper()
	return s.sorted(tb, "PUBSUB", "CHANNELS")
}

func (s *Server) sorted(tb testing.TB, args ...string) []string {
	tb.Helper()
	list, err := s.Do(tb, args...).AsStrSlice()
	if err != nil {
		tb.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	slices.Sort(list)
	return list
}

// CanPause reports whether Pause and Resume work: on a real server they do, on
// miniredis they do nothing.
func (s *Server) CanPause() bool { return !s.IsMini() }

// Pause stops the server's process. Its connections stay open and what is sent
// to it waits until Resume.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = nil
	if s.proc != nil {
		s.proc.signal(sig)
	}
}

// Kill ends the server at once, as a crash would. It may be called again. Its port stays taken
// until the test ends or the server comes back: else a server of another test could get it, and
// the clients of this one.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	if s.port == nil && !s.inBubble {
		s.port = reserve(s.Addr)
	}
}

// end ends the test's use of the server: the next test gets it, or it ends for good, as it does
// after a test that has failed.
func (s *Server) end(failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spare != nil && !failed {
		s.closeAdmin()
		if s.spare.giveBack() {
			s.proc, s.spare = nil, nil
			return
		}
	}
	s.kill()
	s.port.release()
	s.port = nil
}

// kill does the work of Kill. s.mu is held.
func (s *Server) kill() {
	// The admin client ends with the server: after a restart its first command
	// would meet the broken connection.
	s.closeAdmin()
	s.spare = nil
	if s.IsMini() {
		s.Mini.Close()
	} else if s.proc != nil {
		s.proc.kill()
	}
}

// closeAdmin closes the client of Do. s.mu is held.
func (s *Server) closeAdmin() {
	if s.admin != nil {
		s.admin.Close()
		s.admin = nil
	}
}

// Restart kills the server, unless that has been done, and starts it again on
// the same address. It comes back without keys and without scripts.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.restart(); err != nil {
		tb.Fatalf("restart %s: %v", s.Addr, err)
	}
	if s.IsMini() {
		// A real server forgets its scripts as well.
		if err := s.Do(tb, "SCRIPT", "FLUSH").Error(); err != nil {
			tb.Fatalf("SCRIPT FLUSH: %v", err)
		}
	}
}

func (s *Server) restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill()
	s.port.release()
	s.port = nil
	if s.IsMini() {
		s.Mini.FlushAll()
		// Close has cancelled the context that blocking commands live by, and
		// miniredis makes no new one.
		s.Mini.Ctx, s.Mini.CtxCancel = context.WithCancel(context.Background())
		// Another test may just be looking whether the port is free.
		var err error
		poll(5*time.Second, func() bool {
			err = s.Mini.Restart()
			return err == nil
		})
		return err
	}
	var err error
	for range startTries {
		var p *process
		if p, err = s.start(); err == nil {
			s.proc = p
			return nil
		}
	}
	return err
}

// Commands returns how often each command was called since the start or the
// last ResetStats, by name in lower case: "evalsha", or "config|get" from Redis 7.0 on. It works on
// a real server only. Commands inside scripts count too, and so do those of
// clients setting up a connection.
func (s *Server) Commands(tb testing.TB) map[string]int {
	tb.Helper()
	text, err := s.Do(tb, "INFO", "commandstats").ToString()
	if err != nil {
		tb.Fatalf("INFO commandstats: %v", err)
	}
	calls := map[string]int{}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "cmdstat_")
		if !ok {
			continue
		}
		name, stats, _ := strings.Cut(rest, ":calls=")
		number, _, _ := strings.Cut(stats, ",")
		if calls[name], err = strconv.Atoi(number); err != nil {
			tb.Fatalf("INFO commandstats: %q: %v", line, err)
		}
	}
	return calls
}

// ResetStats sets the counts of Commands to zero, on a real server only.
func (s *Server) ResetStats(tb testing.TB) {
	tb.Helper()
	if err := s.Do(tb, "CONFIG", "RESETSTAT").Error(); err != nil {
		tb.Fatalf("CONFIG RESETSTAT: %v", err)
	}
}
