package modeltest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/rlock"
)

// Seat is a place where one process after another runs.
type Seat struct {
	N       int
	Life    int            // the how many-th process it is
	Session *rlock.Session // of the process; nil while none runs
	Actors  []*Actor

	killed bool // the last process was
	link   *link
}

// A link is what lies between a process and Redis.
type link struct {
	mu    sync.Mutex
	conns []net.Conn
	dead  bool
}

var errDead = &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("the process is dead")}

func (l *link) dial(m *miniredis.Miniredis) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return nil, errDead
	}
	c, err := m.Dial()
	if err == nil {
		l.conns = append(l.conns, c)
	}
	return c, err
}

// cut ends all connections. New ones can be made, unless it is for good.
func (l *link) cut(forGood bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = l.dead || forGood
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// start runs a new process on an empty seat.
func (w *World) start(s *Seat) {
	link := new(link)
	session, err := rlock.Dial(context.Background(), rueidis.ClientOption{
		InitAddress:       []string{"bubble"},
		ForceSingleClient: true, // miniredis would be taken for a cluster
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return link.dial(w.Redis)
		},
	}, w.Config)
	if err != nil {
		w.Failf("Dial: %v", err)
		return
	}
	s.Life++
	s.Session, s.link, s.killed = session, link, false
	w.Config.Lease = cmp.Or(w.Config.Lease, rlock.DefaultLease)
	w.Config.ReleaseTimeout = cmp.Or(w.Config.ReleaseTimeout, rlock.DefaultReleaseTimeout)
	w.Config.PollFloor = cmp.Or(w.Config.PollFloor, rlock.DefaultPollFloor)
	w.Config.QueueLease = cmp.Or(w.Config.QueueLease, rlock.DefaultQueueLease)
	w.Logf("seat %d: process %d.%d starts", s.N, s.N, s.Life)
}

// close ends the process in good order, in the background: it must take no time.
func (w *World) close(s *Seat) {
	w.Logf("seat %d: process %d.%d closes", s.N, s.N, s.Life)
	session := s.Session
	s.Session = nil
	w.model.Gone(s, false)
	w.mu.Lock()
	w.closing++
	w.mu.Unlock()
	w.down.Go(func() {
		err := session.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.closing--
		w.closeErr = errors.Join(w.closeErr, err)
	})
}

// kill ends the process without a word to Redis. What is left of it here runs against a
// dead link until it has ended; nobody listens to it.
func (w *World) kill(s *Seat) {
	w.Logf("seat %d: process %d.%d is killed", s.N, s.N, s.Life)
	session := s.Session
	s.Session, s.killed = nil, true
	s.link.cut(true)
	w.down.Go(func() { _ = session.Close() }) // it cannot reach Redis, so it fails
	w.model.Gone(s, true)
	for _, a := range s.Actors {
		a.call = nil
	}
}

func (l *link) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}
