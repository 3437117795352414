package simulate

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// A link is what lies between one host and Redis.
type link struct {
	mini *miniredis.Miniredis
	base time.Duration // of one way

	mu    sync.Mutex // guards what follows
	rng   *rand.Rand
	slow  float64        // how many times as long it takes
	late  time.Duration  // for how much longer what Redis sends is on its way
	gate  chan struct{}  // closed while the network passes on what is on its way
	down  bool           // nobody is let in
	pipes map[*pipe]bool // the connections
	// constant is for how long everything is on its way, whatever is drawn; 0: it is drawn.
	constant time.Duration
}

func newLink(mini *miniredis.Miniredis, rng *rand.Rand) *link {
	l := &link{mini: mini, rng: rng, slow: 1, gate: make(chan struct{}), pipes: map[*pipe]bool{}}
	l.base = time.Duration(20+rng.IntN(1500)) * time.Microsecond
	close(l.gate)
	return l
}

// option returns client options that lead over the link.
func (l *link) option() rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{"redis"}, ForceSingleClient: true, AlwaysPipelining: true, PipelineMultiplex: -1, DisableCache: true,
		ReadBufferEachConn: 4 << 10, WriteBufferEachConn: 4 << 10, RingScaleEachConn: 6,
		Dialer:    net.Dialer{KeepAlive: 10 * time.Second},
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return l.dial() },
	}
}

// lag draws for how long something is on its way, to Redis or back: mostly the base and somewhat more, at times much longer.
func (l *link) lag(back bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.constant > 0 {
		return l.constant
	}
	d := float64(l.base) * (1 + l.rng.ExpFloat64()/3)
	if l.rng.IntN(200) == 0 {
		d *= 5
	}
	total := time.Duration(d*l.slow) + time.Duration(l.rng.IntN(1000))
	if back {
		total += l.late
	}
	return total
}

// A pipe is one connection over the link.
type pipe struct {
	link           *link
	client, server net.Conn
}

var errRefused = &net.OpError{Op: "dial", Net: "memory", Err: syscall.ECONNREFUSED}

func (l *link) dial() (net.Conn, error) {
	time.Sleep(l.lag(false) + l.lag(true))
	l.pass()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errRefused
	}
	server, err := l.mini.Dial()
	if err != nil {
		return nil, err
	}
	client, here := net.Pipe()
	p := &pipe{l, here, server}
	l.pipes[p] = true
	go p.carry(here, server)
	go func() {
		p.carry(server, here)
		l.mu.Lock()
		delete(l.pipes, p)
		l.mu.Unlock()
	}()
	return client, nil
}

// pass waits while the link passes nothing on.
func (l *link) pass() {
	l.mu.Lock()
	gate := l.gate
	l.mu.Unlock()
	<-gate
}

// A packet is some bytes, and when they arrive.
type packet struct {
	bytes []byte
	at    time.Time
}

// A flow is the packets that are on their way. It has room for all of them, as a network and the buffers of Redis
// have: if miniredis had to wait until a message can leave, it would wait with the mutex that all of its clients need,
// and made-up time stands still while one waits for a mutex.
type flow struct {
	mu      sync.Mutex
	some    sync.Cond
	packets []packet
	ended   bool
}

func newFlow() *flow {
	f := new(flow)
	f.some.L = &f.mu
	return f
}

func (f *flow) push(p packet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.packets = append(f.packets, p)
	f.some.Signal()
}

// end says that nothing will follow.
func (f *flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.some.Signal()
}

// pop waits for the next packet; ok is false when there is none any more.
func (f *flow) pop() (p packet, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.packets) == 0 && !f.ended {
		f.some.Wait()
	}
	if len(f.packets) == 0 {
		return p, false
	}
	p, f.packets = f.packets[0], f.packets[1:]
	return p, true
}

// carry takes what one side sends to the other one, until that side ends; what is on its way then still arrives.
func (p *pipe) carry(from, to net.Conn) {
	queue, done := newFlow(), make(chan struct{})
	go func() {
		defer close(done)
		for next, ok := queue.pop(); ok; next, ok = queue.pop() {
			time.Sleep(time.Until(next.at))
			p.link.pass()
			_, _ = to.Write(next.bytes)
		}
		_ = to.Close()
	}()
	last, buf := time.Time{}, make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if at := time.Now().Add(p.link.lag(from == p.server)); at.After(last) {
				last = at
			}
			queue.push(packet{append([]byte(nil), buf[:n]...), last})
		}
		if err != nil {
			queue.end()
			<-done
			return
		}
	}
}

// shut has nothing pass until open.
func (l *link) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gate:
		l.gate = make(chan struct{})
	default:
	}
}

func (l *link) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.gate:
	default:
		close(l.gate)
	}
}

// cut ends all connections on the host's side. What the host has sent still arrives.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pipes {
		_ = p.client.Close()
	}
}

// crash ends them on Redis's side.
func (l *link) crash() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pipes {
		_ = p.server.Close()
	}
}

func (l *link) refuse(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
}

// delays has what Redis sends take so much longer.
func (l *link) delays(late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = late
}

func (l *link) slowed(factor float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = factor
}
