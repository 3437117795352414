package script

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"relock/internal/backoff"
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

// moves is when connections are made anew since the server is not the one to talk to.
type moves struct {
	resubscribe func()      // nil: the connections are left as they are
	leaving     atomic.Bool // no command has been seen to be executed since they were ended

	mu    sync.Mutex // guards what follows
	pause time.Duration
	next  time.Time // not before
}

// Follow has connections end when Redis answers that it is no primary that serves: a new dial may
// lead to one. resubscribe has subscriptions made anew, over new connections; it must not block.
// Follow is for a client of one address, and must be called before the first command.
func (c *Connection) Follow(resubscribe func()) { c.moves.resubscribe = resubscribe }

// leave ends all connections, if it is time for that; those that are made next may lead to
// another server.
func (c *Connection) leave() {
	if c.moves.resubscribe == nil || !c.moves.due(time.Now()) {
		return
	}
	c.Doubt()
	open := c.connections() // before new ones are made
	c.moves.leaving.Store(true)
	c.moves.resubscribe()
	for _, conn := range open {
		cut(conn)
	}
	c.suspect.Store(true)
}

// arrived notes that a command was executed. After leave the subscriptions are made anew once
// more: they were dialled before the connection for commands was, as a rule, and the name may have
// moved in between. The command may also have been under way before leave, or be one that only
// reads, which a replica executes. That does no harm: the next refusal has the connections left
// again.
func (c *Connection) arrived() {
	if c.moves.leaving.Load() && c.moves.leaving.CompareAndSwap(true, false) {
		c.moves.resubscribe()
	}
}

// due reports whether the pause since the last time is over, and begins the next one if so. After
// a quiet time the pauses are short again.
func (m *moves) due(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Before(m.next) {
		return false
	}
	if now.Sub(m.next) > leavePauseMost {
		m.pause = 0
	}
	m.pause = min(max(2*m.pause, leavePause), leavePauseMost)
	m.next = now.Add(backoff.Jitter(m.pause))
	return true
}

// cut closes the socket of a connection without sending what is still in its buffer. What a proxy
// or the server's socket has got already may still be executed, so the outcome of a command without
// an answer stays unknown. The owner of the connection finds it closed, and closes it too.
func cut(conn net.Conn) {
	switch c := conn.(type) {
	case *watched:
		conn = c.Conn
	case *kept:
		conn = c.Conn
	}
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapped.NetConn() // of TLS, which would wait until its farewell is sent
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
