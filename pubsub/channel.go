package pubsub

import (
	"time"
)

// chanKey names a channel. Plain and sharded channels live in two name spaces.
type chanKey struct {
	name    string
	sharded bool
}

// state is where a channel is on its way to being subscribed.
//
//	unplaced → queued → sent → confirmed
//
// and from each of the last three back to unplaced: place and take move it forwards,
// confirmed (the hook) completes it; detach takes it back when the connection is
// lost, the server refuses or revokes, or the linger is over.
type state uint8

const (
	unplaced  state = iota // no connection is responsible; in Hub.unplaced
	queued                 // in conn.subs
	sent                   // SUBSCRIBE is under way
	confirmed              // the server said yes
)

// channel is one subscription with its listeners. key and slot never change; all other
// fields are guarded by Hub.mu. Invariant: conn != nil exactly when state is not unplaced; then
// it counts in conn.n.
type channel struct {
	key       chanKey
	slot      uint16 // of a sharded channel
	state     state
	conn      *conn
	listeners []*Listener

	tries     int       // attempts that ended in "elsewhere", in a row
	notBefore time.Time // unplaced: not to be placed before this
	refused   error     // what Listen gets until notBefore; set means the last attempt was refused

	idleAt time.Time // when the last listener left
	inIdle bool      // in Hub.idle
}

// join adds l to the channel, creating it if need be. The result channel is nil when
// the subscription is confirmed already.
func (h *Hub) join(l *Listener, key chanKey) (<-chan error, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	if h.bad != nil {
		return nil, h.bad
	}
	now := time.Now()
	ch := h.channels[key]
	switch {
	case ch == nil:
		ch = &channel{key: key}
		if key.sharded {
			ch.slot = h.slotOf(key.name)
		}
		h.channels[key] = ch
		h.unplaced[ch] = struct{}{}
	case ch.refused != nil && now.Before(ch.notBefore):
		return nil, ch.refused
	}
	// From here on l gets what arrives, also before its Listen has returned. That is
	// one wake-up too many at worst; the other way round one could be lost.
	l.ch, l.idx = ch, len(ch.listeners)
	ch.listeners = append(ch.listeners, l)
	if ch.state == confirmed {
		l.ready = true
		return nil, nil
	}
	l.result = make(chan error, 1)
	// Placing it here rather than in the manager keeps a topology refresh, which
	// blocks the manager, from delaying channels that do not need it.
	if ch.state == unplaced && !h.place(ch, now) {
		h.wake.Up()
	}
	if !h.managing {
		h.managing = true
		h.wg.Go(h.manage)
	}
	return l.result, nil
}

// leave takes l out of its channel. The last one starts the linger.
func (h *Hub) leave(l *Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.idx < 0 {
		return
	}
	ch := l.ch
	ch.remove(l)
	if h.closed || len(ch.listeners) > 0 {
		return
	}
	now := time.Now()
	if ch.state == unplaced {
		if ch.refused == nil || !now.Before(ch.notBefore) { // else it is kept for the next Listen
			h.forget(ch)
			h.wake.Up()
		}
		return
	}
	// A channel is in the queue at most once, however often it is taken up and
	// left: expire looks at idleAt when its turn comes.
	ch.idleAt = now
	if !ch.inIdle {
		ch.inIdle = true
		h.idle = append(h.idle, lingering{ch, now.Add(h.linger)})
		if len(h.idle) == 1 {
			h.wake.Up()
		}
	}
}

// remove takes l out of ch.listeners by moving the last one into its place.
func (ch *channel) remove(l *Listener) {
	last := len(ch.listeners) - 1
	ch.listeners[l.idx] = ch.listeners[last]
	ch.listeners[l.idx].idx = l.idx
	ch.listeners[last] = nil
	ch.listeners = ch.listeners[:last]
	l.idx = -1
}

// failWaiting ends the blocked Listen calls of ch with err. Listeners that were
// confirmed before stay. Caller holds mu.
func failWaiting(ch *channel, err error) {
	// Backwards: remove fills the gap with the last one, which has been looked at.
	for i := len(ch.listeners) - 1; i >= 0; i-- {
		if l := ch.listeners[i]; !l.ready {
			ch.remove(l)
			l.closed.Store(true)
			l.result <- err // capacity 1, and sent once: l has just left
		}
	}
}

// lingering is an entry of Hub.idle.
type lingering struct {
	ch  *channel
	due time.Time
}

// expire unsubscribes the channels that have had no listener for the linger. Caller holds mu.
//
// One that was taken up and left again goes to the end of the queue, where it may
// wait behind younger ones: Linger is the minimum, twice that the maximum.
func (h *Hub) expire(now time.Time, earliest func(time.Time)) {
	for len(h.idle) > 0 {
		head := h.idle[0]
		if now.Before(head.due) {
			earliest(head.due)
			return
		}
		h.idle[0] = lingering{}
		h.idle = h.idle[1:]
		ch := head.ch
		if len(ch.listeners) > 0 || ch.state == unplaced {
			ch.inIdle = false // in use again, or gone with its connection
			continue
		}
		if due := ch.idleAt.Add(h.linger); now.Before(due) {
			h.idle = append(h.idle, lingering{ch, due})
			continue
		}
		ch.inIdle = false
		c := ch.conn
		if ch.state != queued { // queued: never sent, nothing to take back
			c.unsubs = append(c.unsubs, ch)
		}
		h.detach(ch)
		h.forget(ch)
		c.wake.Up()
	}
	h.idle = nil // let go of the array that the queue has walked through
}

// place gives ch to the connection of the node that serves it, starting one if there
// is none. It reports false when it has to wait: for a back-off or for the topology.
// Caller holds mu; ch is unplaced.
func (h *Hub) place(ch *channel, now time.Time) bool {
	if now.Before(ch.notBefore) {
		return false // a new listener does not shorten the back-off of its channel
	}
	addr, ok := h.route(ch)
	if !ok {
		return false
	}
	n := h.nodes[addr]
	if n == nil {
		n = &node{}
		h.nodes[addr] = n
	}
	if n.conn == nil {
		if now.Before(n.notBefore) {
			return false
		}
		// The channel waits on the connection from the start, before it is dialled:
		// all that come meanwhile go out in the same first round.
		c := newConn(h, addr)
		n.conn = c
		h.wg.Go(func() { c.run(h.ctx) })
	}
	c := n.conn
	delete(h.unplaced, ch)
	ch.refused = nil // the server is asked anew; the old answer counts no more
	ch.conn, ch.state = c, queued
	c.n++
	c.subs = append(c.subs, ch)
	c.wake.Up()
	return true
}

// retryAt says when to try a channel again that place could not place. Caller holds mu.
func (h *Hub) retryAt(ch *channel) time.Time {
	t := ch.notBefore
	addr, ok := h.route(ch)
	if !ok {
		t = h.topo.nextRefresh()
	} else if n := h.nodes[addr]; n != nil && n.notBefore.After(t) {
		t = n.notBefore
	}
	return t
}

// detach takes ch off its connection; it is unplaced afterwards. Caller holds mu.
func (h *Hub) detach(ch *channel) {
	if ch.conn != nil {
		ch.conn.n--
	}
	ch.conn, ch.state = nil, unplaced
	h.unplaced[ch] = struct{}{}
}

// forget drops an unplaced channel without listeners. Caller holds mu.
func (h *Hub) forget(ch *channel) {
	delete(h.unplaced, ch)
	delete(h.channels, ch.key)
}

// postpone puts ch back to be placed again after a growing pause, because err says it
// does not belong, or not yet, where it was sent. Caller holds mu.
func (h *Hub) postpone(ch *channel, err error, now time.Time) {
	h.detach(ch)
	ch.tries++
	ch.notBefore = now.Add(backoff(ch.tries))
	if ch.tries >= maxTries {
		// New listeners are told, and may poll. Those that were confirmed once stay,
		// and the hub goes on trying for them.
		failWaiting(ch, err)
	}
	if len(ch.listeners) == 0 {
		h.forget(ch)
	}
}
