package faulttest

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy stands in front of one server. Its methods are safe for concurrent use.
type Proxy struct {
	tb     testing.TB
	target string
	dial   func() (net.Conn, error) // to the server
	ln     net.Listener             // nil: clients come by Option
	wg     sync.WaitGroup

	mu     sync.Mutex // guards what follows
	conns  map[*conn]struct{}
	closed bool
	faults
	log [][]string
}

// faults are what a Proxy is told to do.
type faults struct {
	refuse   bool          // new connections
	noMsgs   bool          // no message passes
	gate     chan struct{} // closed while bytes may pass
	requests []*rule
	replies  []*rule
	refused  map[string]string // command in upper case -> error line
}

// rule is a fault that strikes once.
type rule struct {
	match func(cmd []string) bool
	drop  bool
	delay time.Duration
	// instead is what the client gets in place of the reply; "": the reply
	instead string
	seen    chan struct{} // of a hold: closed when it has struck
	hold    chan struct{} // of a hold: closed to let go
}

// New starts a proxy for the server at the address target. It passes everything
// on until told otherwise, and is closed when the test ends.
func New(tb testing.TB, target string) *Proxy {
	tb.Helper()
	if _, _, err := net.SplitHostPort(target); err != nil {
		tb.Fatalf("proxy of %q: %v; a server without an address needs Of", target, err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := newProxy(tb, target, func() (net.Conn, error) { return net.DialTimeout("tcp", target, 5*time.Second) })
	p.ln = ln
	p.wg.Go(p.accept)
	tb.Cleanup(p.close)
	return p
}

func newProxy(tb testing.TB, target string, dial func() (net.Conn, error)) *Proxy {
	p := &Proxy{
		tb:     tb,
		target: target,
		dial:   dial,
		conns:  map[*conn]struct{}{},
		faults: faults{gate: make(chan struct{}), refused: map[string]string{}},
	}
	close(p.gate)
	return p
}

// Addr returns the address to connect to in place of the server's.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	if p.ln != nil {
		_ = p.ln.Close()
	}
	p.cut()
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		p.admit(client)
	}
}

// admit serves a connection that a client has made.
func (p *Proxy) admit(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refuse {
		_ = client.Close()
		return
	}
	c := newConn(p, client)
	p.conns[c] = struct{}{}
	p.wg.Go(c.run)
}

// Count returns how many commands with one of the names, in any case, have been
// forwarded since the last Reset. Without names it counts all, except those
// that set up connections and keep them alive: HELLO, CLIENT, AUTH, SELECT and
// PING.
func (p *Proxy) Count(names ...string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, cmd := range p.log {
		if len(names) == 0 && !isChore(cmd) {
			n++
		}
		for _, name := range names {
			if strings.EqualFold(cmd[0], name) {
				n++
				break
			}
		}
	}
	return n
}

// Log returns the commands that Count counts without names, in the order in
// which they were forwarded, each with its arguments, separated by spaces.
func (p *Proxy) Log() []string {
	var lines []string
	for _, cmd := range p.Sent() {
		lines = append(lines, strings.Join(cmd, " "))
	}
	return lines
}

// Sent returns what Log does, each command as its arguments: they may have spaces in them.
func (p *Proxy) Sent() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var sent [][]string
	for _, cmd := range p.log {
		if !isChore(cmd) {
			sent = append(sent, slices.Clone(cmd))
		}
	}
	return sent
}

// Reset forgets the commands counted so far. Faults stay.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = nil
}

// DropReply swallows the reply to the next matching command and cuts its
// connection: the command has run, and the client cannot know. Replies to
// earlier commands arrive.
func (p *Proxy) DropReply(match func(cmd []string) bool) {
	p.onReply(&rule{match: match, drop: true})
}

// DropRequest cuts the connection of the next matching command in place of
// forwarding it, once the replies to earlier commands have arrived.
func (p *Proxy) DropRequest(match func(cmd []string) bool) {
	p.onRequest(&rule{match: match, drop: true})
}

// DelayReply holds back the reply to the next matching command, and what
// follows it on its connection, for the duration d from when the server
// answered.
func (p *Proxy) DelayReply(d time.Duration, match func(cmd []string) bool) {
	p.onReply(&rule{match: match, delay: d})
}

// HoldReply holds back the reply to the next matching command, and what follows
// it on its connection, until release is called. The channel seen is closed when
// the server has answered, so that the command is known to have run. Calling
// release early, or twice, does no harm.
func (p *Proxy) HoldReply(match func(cmd []string) bool) (seen <-chan struct{}, release func()) {
	r, release := hold(match)
	p.onReply(r)
	return r.seen, release
}

// HoldRequest holds back the next matching command, and what follows it on its
// connection, until release is called. The channel seen is closed when the
// command has reached the proxy. It is forwarded in the end even if the client
// has gone away, as a late packet would be. Calling release early, or twice,
// does no harm.
func (p *Proxy) HoldRequest(match func(cmd []string) bool) (seen <-chan struct{}, release func()) {
	r, release := hold(match)
	p.onRequest(r)
	return r.seen, release
}

func hold(match func(cmd []string) bool) (*rule, func()) {
	r := &rule{match: match, seen: make(chan struct{}), hold: make(chan struct{})}
	return r, sync.OnceFunc(func() { close(r.hold) })
}

func (p *Proxy) onRequest(r *rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
}

func (p *Proxy) onReply(r *rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies = append(p.replies, r)
}

// Cut closes every connection now. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// cut does the work of Cut. p.mu is held.
func (p *Proxy) cut() {
	for c := range p.conns {
		c.close()
	}
}

// BlackHole makes the network silent: while it is on, nothing passes in either
// direction, and new connections are accepted but get no answer. When it is
// turned off, what was held passes, also the commands of clients that have
// gone away since.
func (p *Proxy) BlackHole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate: // is off
		if on {
			p.gate = make(chan struct{})
		}
	default:
		if !on {
			close(p.gate)
		}
	}
}

// Refuse cuts all connections when it is turned on, and closes new ones at once
// while it is.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
	if on {
		p.cut()
	}
}

// DropMessages makes every wake-up get lost: while it is on, the messages of
// channels, shard channels and patterns are swallowed. Confirmations and replies
// pass.
func (p *Proxy) DropMessages(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noMsgs = on
}

// RefuseCommand answers every command with the given name, in any case, with an
// error such as "NOPERM not allowed", and forwards none, until it is called
// again with "". The commands are not counted, and one-shot faults do not strike
// them.
func (p *Proxy) RefuseCommand(name string, errReply string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name = strings.ToUpper(name)
	if errReply == "" {
		delete(p.refused, name)
		return
	}
	p.refused[name] = "-" + strings.TrimSpace(strings.TrimPrefix(errReply, "-")) + "\r\n"
}
