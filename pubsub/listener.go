package pubsub

import (
	"context"
	"sync"
	"sync/atomic"
)

// Message is what a [Listener] receives.
type Message struct {
	// Payload is what was published; empty when Missed is set.
	Payload string
	// Missed says that this is not a message: the subscription was interrupted, or
	// has just been restored, or the hub was closed, and anything may have been
	// published unheard. Look at the state that the messages are about.
	Missed bool
}

// Listener is one party's interest in one channel. All methods are safe for
// concurrent use.
type Listener struct {
	hub *Hub
	fn  func(Message)
	c   chan Message // capacity 1; nil for ListenFunc

	// call serialises fn: messages come from the connection's reader, Missed also
	// from the goroutines that notice a loss.
	call   sync.Mutex
	closed atomic.Bool

	// The rest is guarded by hub.mu.
	ch     *channel
	idx    int        // place in ch.listeners; -1 when not in it
	ready  bool       // the subscription has been confirmed to the caller
	result chan error // capacity 1: how the wait for the confirmation ended
}

// C returns the channel on which messages arrive. It holds one: a message that
// finds an older one unread replaces it, since one wake-up is as good as two; but
// an unread Missed is not replaced, because it says more than any payload. The
// channel is never closed. It may still hold a message after Close. For a Listener
// made by ListenFunc it is nil.
func (l *Listener) C() <-chan Message { return l.c }

// Close ends the interest. It does not block and does no I/O; the channel itself
// stays subscribed for a moment (see [Linger]). A call of fn that is under way may
// still be running when Close returns, but no new one begins. Idempotent; may be
// called from fn.
func (l *Listener) Close() {
	if !l.closed.Swap(true) {
		l.hub.leave(l)
	}
}

// deliver hands m to the listener. The caller must not hold hub.mu.
func (l *Listener) deliver(m Message) {
	l.call.Lock()
	defer l.call.Unlock()
	if !l.closed.Load() {
		l.fn(m)
	}
}

// coalesce is the fn of a C() listener. deliver serialises the calls, so no
// other one fills the slot between the two steps.
func (l *Listener) coalesce(m Message) {
	select {
	case old := <-l.c:
		if old.Missed {
			m = old
		}
	default:
	}
	l.c <- m
}

// deliverAll hands m to each of ls.
func deliverAll(ls []*Listener, m Message) {
	for _, l := range ls {
		l.deliver(m)
	}
}

// Listen subscribes to channel and returns when the server has confirmed it; at
// once, and without traffic, when the hub has a confirmed listener there already.
// Everything published after Listen returned is received, or else announced as
// Missed.
//
// In a Cluster of Redis 7 or later the channel is a sharded one: publish with
// SPUBLISH (see [Hub.Sharded]).
//
// ctx bounds the wait for the confirmation only; when it ends the error matches
// ctx's and nothing is left behind. Other errors: [ErrClosed]; [ErrRefused] with the
// server's error; the dial error when the server cannot be reached. After any of
// them Listen may simply be called again.
func (h *Hub) Listen(ctx context.Context, channel string) (*Listener, error) {
	return h.listenC(ctx, channel, false)
}

// ListenBroadcast is Listen by a plain SUBSCRIBE also in a Cluster, where a PUBLISH on any node reaches
// the subscribers of all nodes.
func (h *Hub) ListenBroadcast(ctx context.Context, channel string) (*Listener, error) {
	return h.listenC(ctx, channel, true)
}

// Subscribed reports whether the server delivers what is published on a channel: also for a moment after
// the last listener has left, see [Linger].
func (h *Hub) Subscribed(channel string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, sharded := range []bool{false, true} {
		if ch := h.channels[chanKey{name: channel, sharded: sharded}]; ch != nil && ch.state == confirmed {
			return true
		}
	}
	return false
}

func (h *Hub) listenC(ctx context.Context, channel string, broadcast bool) (*Listener, error) {
	l := &Listener{hub: h, c: make(chan Message, 1), idx: -1}
	l.fn = l.coalesce
	return h.listen(ctx, channel, broadcast, l)
}

// ListenFunc is Listen for callers that need every payload: fn is called for each
// message, one at a time, in the order in which the server sent them. It runs on the
// goroutine that reads the connection, so it must not block, nor call Listen or
// [Hub.Close]; Listener.Close is fine. fn may be called before ListenFunc returns.
//
// broadcast asks for a plain SUBSCRIBE also in a Cluster, where a PUBLISH on any node
// reaches the subscribers of all nodes.
func (h *Hub) ListenFunc(ctx context.Context, channel string, broadcast bool, fn func(Message)) (*Listener, error) {
	if fn == nil {
		return nil, listenError(channel, errNilFunc)
	}
	return h.listen(ctx, channel, broadcast, &Listener{hub: h, fn: fn, idx: -1})
}

func (h *Hub) listen(ctx context.Context, name string, broadcast bool, l *Listener) (*Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, listenError(name, err)
	}
	key := chanKey{name: name}
	if !broadcast {
		sharded, err := h.Sharded(ctx)
		if err != nil {
			return nil, listenError(name, err)
		}
		key.sharded = sharded
	}
	wait, err := h.join(l, key)
	if err != nil {
		return nil, listenError(name, err)
	}
	if wait == nil {
		return l, nil
	}
	select {
	case err = <-wait:
		if err != nil {
			return nil, listenError(name, err)
		}
		return l, nil
	case <-ctx.Done():
		// The confirmation may have come in this very moment; the caller has given
		// up all the same, so the reference is dropped either way.
		l.Close()
		return nil, listenError(name, ctx.Err())
	}
}
