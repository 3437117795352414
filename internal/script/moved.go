package script

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/clock"
	"relock/internal/life"
)

// A session with one address follows a name: the name may lead to another server than before, as
// where a managed service moves it to a new primary. The old one may go on as a replica and keep
// its connections. Then its answers are the only news of the move.

const (
	// leavePause is the first pause between two times that connections are made anew; each further
	// pause is twice as long, up to leavePauseMost. With the jitter that is 0.25 to 0.5 s at first,
	// and 2 to 4 s in the end. So a name that goes on leading to a replica costs little, and a name
	// that moves late is followed well within the default lease.
	leavePause     = 500 * time.Millisecond
	leavePauseMost = 4 * time.Second
)

// moves is when connections are made anew since the server is not the one to talk to. The first four are set by
// Follow.
type moves struct {
	resubscribe func() // nil: the connections are left as they are
	scout       *Scout
	client      rueidis.Client
	background  *life.Group

	leaving  atomic.Bool // no command has been seen to be executed since the server was none to talk to
	scouting atomic.Bool // the scout is under way

	mu sync.Mutex // guards what follows
	pauses
}

// Follow has connections end when Redis answers that it is no primary that serves: a new dial may
// lead to one. It is for a client of one address, and must be called before the first command.
// resubscribe has subscriptions made anew, over new connections; it must not block. scout finds out where the name
// leads now; nil: nothing can. Then a server that loads is not left.
func (c *Connection) Follow(client rueidis.Client, resubscribe func(), scout *Scout, background *life.Group) {
	m := &c.moves
	m.client, m.resubscribe, m.scout, m.background = client, resubscribe, scout, background
}

// leave ends all connections, if it is time for that; those that are made next may lead to another
// server. One that loads its data may be a primary that comes back, or an old one that begins as a
// replica. It is left if the name leads to a server that serves: to dial again and again helps
// nobody, and a server that loads the least.
func (c *Connection) leave(loads bool) {
	m := &c.moves
	switch {
	case m.resubscribe == nil || !m.begin(time.Now()):
	case !loads:
		c.depart()
	case m.scout == nil:
		m.leaving.Store(true) // the client may find its way, and then the subscriptions follow: see arrived
	case m.scouting.CompareAndSwap(false, true):
		m.background.Go(func() {
			defer m.scouting.Store(false)
			if m.scout.serves() && c.stillLoads() { // else it was this server, which has loaded meanwhile
				c.depart()
			}
		})
	}
}

// begin is due, with the mutex.
func (m *moves) begin(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.due(now)
}

// depart ends all connections. What closes them may be the caller's code, so it has goroutines of its
// own.
func (c *Connection) depart() {
	c.Doubt()
	open := c.connections() // before new ones are made
	c.moves.leaving.Store(true)
	c.moves.resubscribe()
	c.suspect.Store(true)
	for _, conn := range open {
		c.moves.background.Go(func() { cut(conn) })
	}
}

// arrived notes that a command was executed. After leave the subscriptions are made anew once
// more: they were dialled before the connection for commands was, as a rule, and the name may have
// moved in between. The command may also have been under way before leave, or be one that only
// reads, which a replica executes. That does no harm: the next refusal has the connections left
// again.
func (c *Connection) arrived() {
	m := &c.moves
	if m.leaving.Load() && m.leaving.CompareAndSwap(true, false) {
		m.mu.Lock()
		m.executed = true
		m.mu.Unlock()
		m.resubscribe()
	}
}

// pauses are those between two times that connections are made anew.
type pauses struct {
	pause    time.Duration
	next     time.Time // not before
	refused  time.Time // the last time that the server said that it is none to talk to
	executed bool      // a command was, since pause began
}

const (
	// quiet is for how long nothing is refused by a server that is no primary any more.
	quiet = leavePauseMost
	// quietAgain is that where a command was executed. A replica executes what only reads, and
	// refuses the rest, which a caller that waits sends about once a second.
	quietAgain = 2 * time.Second
)

// due reports whether the pause since the last time is over, and begins the next one if so. After
// a quiet time the pauses are short again.
func (p *pauses) due(now time.Time) bool {
	since := now.Sub(p.refused)
	p.refused = now
	if since > quiet || p.executed && since > quietAgain {
		p.pause, p.next = 0, now
	}
	if now.Before(p.next) {
		return false
	}
	p.pause, p.executed = min(max(2*p.pause, leavePause), leavePauseMost), false
	p.next = now.Add(clock.Jitter(p.pause))
	return true
}

// cut closes the socket of a connection without sending what is still in its buffer. What a proxy
// or the server's socket has got already may still be executed, so the outcome of a command without
// an answer stays unknown. The owner of the connection finds it closed, and closes it too.
func cut(conn net.Conn) { _ = unsending(conn).Close() }

// unsending returns the innermost connection of conn that is known. To close that discards what is still in
// the socket's buffer.
func unsending(conn net.Conn) net.Conn {
	switch c := conn.(type) {
	case *watched:
		conn = c.Conn
	case *kept:
		conn = c.Conn
	}
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapped.NetConn() // of TLS, which would wait until its farewell is sent
	}
	if socket, ok := conn.(interface{ SetLinger(sec int) error }); ok { // a TCPConn, or what the caller has made of one
		_ = socket.SetLinger(0)
	} else if socket, ok := conn.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			_ = raw.Control(noLinger)
		}
	}
	return conn
}
