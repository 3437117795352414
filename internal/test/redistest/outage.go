package redistest

import (
	"context"
	"syscall"
	"testing"
	"time"
)

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
	if s.port == nil && s.bubble == nil {
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
		if s.bubble != nil {
			s.bubble.set(true)
		}
		s.Mini.Close()
	} else if s.proc != nil {
		s.proc.kill()
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
		if s.bubble != nil {
			s.bubble.set(false)
			return nil
		}
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
