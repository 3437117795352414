package pubsub

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/clock"
)

// Hub shares subscriptions among all the listeners of a process: one connection per
// Redis node, one SUBSCRIBE per channel. All methods are safe for concurrent use.
type Hub struct {
	// Goroutines: one per connection (conn.run, which has another send commands), one for the hub as a whole (manage),
	// both only while something is subscribed. Lock order: Listener.call is never held when
	// mu is taken except inside a user's fn; under mu there is no I/O and no call of fn.

	settings
	lifetime
	sharding

	mu       sync.Mutex
	closed   bool // guarded by mu, as is everything below
	managing bool // manage is running
	channels map[chanKey]*channel
	unplaced map[*channel]struct{} // those of channels in state unplaced
	idle     []lingering           // oldest first; see leave and expire
	nodes    map[string]*node      // by address; "" when there is only one
	told     told                  // by address, that it cannot be connected to; and that the topology is not known
	plain    string                // Cluster: the node that carries the plain channels
	topo     topology
}

// settings never change.
type settings struct {
	client       rueidis.Client
	cluster      bool // the client is a Cluster client
	linger       time.Duration
	refusalRetry time.Duration
	silence      time.Duration // answerTimeout, but for tests
	log          *slog.Logger
	watcher      func(Event) // may be nil
	bad          error       // why every Listen fails: nil client, bad option
}

// lifetime is what bounds the hub's goroutines.
type lifetime struct {
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // Go only under Hub.mu while it is not closed
	wake   clock.Wake     // there is something to manage
}

// sharding is whether channels are sharded.
type sharding struct {
	sharded  atomic.Int32  // the answer of Sharded, once known
	shardSem chan struct{} // capacity 1: held while asking for it
}

// node is what the hub remembers about one address. Guarded by Hub.mu.
type node struct {
	conn      *conn     // nil when there is none
	fails     int       // failed dials and short-lived connections in a row
	notBefore time.Time // no dial before this
}

// NewHub returns a hub that subscribes through connections of its own taken from
// client. It does no I/O and starts no goroutine before the first Listen. The caller
// keeps owning client, and may close it before or after the hub. With a nil client or
// a bad option every Listen fails with an error that says so.
func NewHub(client rueidis.Client, opts ...Option) *Hub {
	h := &Hub{
		settings: settings{
			client: client, linger: DefaultLinger, refusalRetry: DefaultRefusalRetry, silence: answerTimeout,
			log: slog.New(slog.DiscardHandler),
		},
		channels: make(map[chanKey]*channel),
		unplaced: make(map[*channel]struct{}),
		nodes:    make(map[string]*node),
		told:     make(told),
	}
	h.wake, h.shardSem = make(clock.Wake, 1), make(chan struct{}, 1)
	h.ctx, h.cancel = context.WithCancel(context.Background())
	for _, o := range opts {
		o(h)
	}
	if client == nil {
		h.bad = errNilClient
		return h
	}
	h.cluster = client.Mode() == rueidis.ClientModeCluster
	return h
}

// Close ends all subscriptions and connections. Blocked Listen calls fail with
// [ErrClosed]; listeners get a last Missed, so that a goroutine that sleeps on one
// looks around. It returns when the hub's goroutines are gone: at once as a rule, after
// a second when a server is silent, after the client's dial timeout when a dial is
// under way. Idempotent; a second call waits too. It always returns nil.
func (h *Hub) Close() error {
	h.mu.Lock()
	var ls []*Listener
	if !h.closed {
		h.closed = true
		for _, ch := range h.channels {
			failWaiting(ch, ErrClosed)
			ls = append(ls, ch.listeners...)
		}
	}
	h.mu.Unlock()
	h.cancel()
	deliverAll(ls, Message{Missed: true})
	h.wg.Wait()
	return nil
}

// manage is the hub's own goroutine: it places channels that have no connection,
// unsubscribes those without listeners, keeps the topology fresh and watches for nodes that
// left. It ends when there is nothing left to do.
func (h *Hub) manage() {
	timer := time.NewTimer(watchInterval)
	defer timer.Stop()
	watchAt := time.Now().Add(watchInterval)
	for {
		// The order matters little; each step only looks at what is there, and a
		// wake-up that comes meanwhile makes for another turn.
		if now := time.Now(); !now.Before(watchAt) {
			h.watch()
			watchAt = now.Add(watchInterval)
		}
		if h.refreshDue() {
			h.refresh(h.ctx)
		}
		next, more := h.tend(time.Now())
		if !more {
			return
		}
		if watchAt.Before(next) {
			next = watchAt
		}
		timer.Reset(time.Until(next))
		select {
		case <-h.wake:
		case <-timer.C:
		case <-h.ctx.Done():
		}
	}
}

// tend does everything that is due and returns when to come back; more is false when
// the manager is to end.
func (h *Hub) tend(now time.Time) (next time.Time, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next = now.Add(watchInterval)
	earliest := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	if h.closed {
		h.managing = false
		return next, false
	}
	// expire first: what it drops need not be placed.
	h.expire(now, earliest)
	for ch := range h.unplaced {
		switch {
		case now.Before(ch.notBefore):
			earliest(ch.notBefore)
		case len(ch.listeners) == 0:
			h.forget(ch) // its refusal has aged, or its listeners left while it had no home
		case !h.place(ch, now):
			earliest(h.retryAt(ch))
		}
	}
	if len(h.channels) > 0 {
		return next, true
	}
	for _, n := range h.nodes {
		if n.conn != nil {
			return next, true
		}
	}
	clear(h.nodes)
	h.managing = false
	return next, false
}

// watch moves away from nodes that are no longer part of the deployment. A connection
// to a deposed Sentinel master, or to a node taken out of the cluster, stays open and
// silent for as long as that server lives; nothing but the client's own idea of the
// topology tells.
func (h *Hub) watch() {
	now := h.client.Nodes()
	h.mu.Lock()
	defer h.mu.Unlock()
	for addr, n := range h.nodes {
		if n.conn == nil {
			continue
		}
		// Before it has proved itself it may be on its way to a node that the client
		// is just learning of. Outside a Cluster the hub does not know which of the
		// client's nodes it is connected to (Sentinel with replicas has two), so any
		// change counts.
		gone := false
		if h.cluster {
			_, known := now[addr]
			gone = !known && n.conn.proved
		} else {
			gone = n.conn.proved && !sameAddresses(n.conn.seen, now)
		}
		if gone {
			n.conn.stop(errMoved)
		}
	}
}

// Reconnect ends each connection as soon as no answer to a subscription is awaited on it, or the
// server has been silent for 5 s, and subscribes anew over others, for the name that the client
// connects to may lead to another server than before. Listeners get Missed, as after a loss.
// Reconnect does not block. A client that keeps idle connections for later use may serve one of
// those instead of a new one.
func (h *Hub) Reconnect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.nodes {
		if n.conn != nil { // also one that is just being made: it may lead to the old server
			n.conn.stop(errReconnect)
		}
	}
}
