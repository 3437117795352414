package pubsub

import (
	"fmt"
	"log/slog"
	"time"

	"relock/internal/clock"
)

const (
	// DefaultLinger is how long a channel stays subscribed after its last listener
	// left. A contended lock is listened to again within milliseconds; half a
	// second spares it the two round trips and costs the server next to nothing.
	DefaultLinger = 500 * time.Millisecond

	// DefaultRefusalRetry is how long a refused channel is not asked for again. An
	// ACL does not heal in milliseconds, and callers poll meanwhile.
	DefaultRefusalRetry = time.Second
)

const (
	// Back-off of everything that is tried again: dialling a node, a channel whose
	// slot is on the move, reading the topology. It doubles from 10 ms up to this.
	maxBackoff = time.Second

	// maxTries bounds how often a channel is sent from node to node before the
	// blocked Listen calls are told; with the back-off this is about a second.
	maxTries = 7

	// answerTimeout is how long a server may confirm nothing while SUBSCRIBE commands wait for its
	// answers. An error reply does not begin it anew. A healthy server needs microseconds a channel;
	// one that is stopped is given up on, and one that is slow is not, for to subscribe anew would make
	// more work for it.
	answerTimeout = 5 * time.Second

	// watchInterval is how often the hub compares its connections' addresses with
	// the client's idea of the deployment. It costs no traffic.
	watchInterval = time.Second

	// tellInterval is how often the Logger hears that a server cannot be connected to. That goes on being tried meanwhile.
	tellInterval = 10 * time.Second
)

// Option adjusts a [Hub].
type Option func(*Hub)

// Linger sets how long a channel, and then the connection, is kept after it was
// last used; default [DefaultLinger]. 0 unsubscribes at once. Negative is an error
// from every Listen.
func Linger(d time.Duration) Option {
	return func(h *Hub) {
		if d < 0 {
			h.bad = fmt.Errorf("pubsub: negative Linger %v", d)
		}
		h.linger = d
	}
}

// RefusalRetry sets for how long a refusal is remembered: Listen fails with it
// without asking the server. Default [DefaultRefusalRetry]; up to a fifth is added at
// random, so that many processes do not ask in step. Below 1 ms is an error from
// every Listen.
func RefusalRetry(d time.Duration) Option {
	return func(h *Hub) {
		if d < time.Millisecond {
			h.bad = fmt.Errorf("pubsub: RefusalRetry %v is below 1ms", d)
		}
		h.refusalRetry = d
	}
}

// Logger makes the hub report lost connections and refused channels; default: nothing.
func Logger(l *slog.Logger) Option {
	return func(h *Hub) {
		if l != nil {
			h.log = l
		}
	}
}

// State is what has become of a connection, or of a subscription.
type State uint8

const (
	Connected State = iota // the first subscription of a connection was confirmed
	Lost                   // such a connection has broken
	Closed                 // such a connection was ended, as no longer needed or by Close
	Refused                // the server refused a subscription
)

// Event is a change of state. Each connection that is Connected is Lost or Closed later, once.
type Event struct {
	State State  // Connected, Lost, Closed or Refused
	Node  string // the connection's address; "" outside of a Cluster
	Err   error  // of Lost and Refused
}

// Watch has fn told what becomes of connections and subscriptions, in order. It is called under
// the hub's mutex: it must return at once and must not call the hub.
func Watch(fn func(Event)) Option {
	return func(h *Hub) { h.watcher = fn }
}

// tell tells the watcher, if there is one. Caller holds mu.
func (h *Hub) tell(e Event) {
	if h.watcher != nil {
		h.watcher(e)
	}
}

// backoff returns the pause after n failures in a row.
func backoff(n int) time.Duration { return clock.Doubling(n-1, maxBackoff) }
