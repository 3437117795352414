package pubsub

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/rueidis"
)

// This file is what happens to a connection: the hooks, which run on rueidis's reader
// and must not block, and the ends of commands and connections.

// onMessage hands a message to the channel's listeners.
//
// The hook does not tell "message" from "smessage". A hub that listens to the same name
// plainly and sharded, on the same node, gets each message on both; harmless.
func (c *conn) onMessage(m rueidis.PubSubMessage) {
	h := c.hub
	h.mu.Lock()
	ls := c.batch[:0]
	for _, sharded := range [...]bool{false, true} {
		// A late message of a connection that the channel has left is dropped; the
		// Missed after the move covers it.
		if ch := h.channels[chanKey{m.Channel, sharded}]; ch != nil && ch.conn == c {
			ls = append(ls, ch.listeners...)
		}
	}
	h.mu.Unlock()
	for _, l := range ls {
		l.deliver(Message{Payload: m.Message})
	}
	clear(ls)
	c.batch = ls
}

// onSubscription notes confirmations, and subscriptions that the server took away.
func (c *conn) onSubscription(s rueidis.PubSubSubscription) {
	switch s.Kind {
	case "subscribe":
		c.confirmed(chanKey{s.Channel, false})
	case "ssubscribe":
		c.confirmed(chanKey{s.Channel, true})
	case "unsubscribe":
		c.revoked(chanKey{s.Channel, false})
	case "sunsubscribe":
		c.revoked(chanKey{s.Channel, true})
	}
}

// confirmed lets the blocked Listen calls go, and tells listeners from before an
// interruption that it is over and may have swallowed something.
func (c *conn) confirmed(key chanKey) {
	h := c.hub
	var missed []*Listener
	h.mu.Lock()
	c.answered()
	// Counted also if the channel has no listener any more: what is counted is the
	// server's answers to this round.
	if c.awaiting--; c.awaiting <= 0 {
		c.wake.Up()
	}
	if !c.proved {
		c.proved, c.provedAt = true, time.Now()
		delete(h.told, c.addr)
		h.tell(Event{State: Connected, Node: c.addr})
	}
	if ch := h.channels[key]; ch != nil && ch.conn == c && ch.state == sent {
		ch.state, ch.tries, ch.refused = confirmed, 0, nil
		for _, l := range ch.listeners {
			if l.ready { // from before an interruption
				missed = append(missed, l)
			} else {
				l.ready = true
				l.result <- nil
			}
		}
	}
	h.mu.Unlock()
	deliverAll(missed, Message{Missed: true})
}

// revoked handles an unsubscription. Ours are of channels that have left the hub; any
// other is the server's doing: the slot has moved to another node.
func (c *conn) revoked(key chanKey) {
	h := c.hub
	h.mu.Lock()
	c.answered()
	ch := h.channels[key]
	if ch == nil || ch.conn != c || ch.state != confirmed {
		h.mu.Unlock()
		return
	}
	missed := slices.Clone(ch.listeners) // all ready, since it was confirmed
	if key.sharded {
		h.topo.owner[ch.slot] = 0 // so the topology is read before the channel is placed
	}
	h.detach(ch)
	ch.notBefore = time.Now().Add(backoff(1)) // no tight loop with a server that keeps at it
	if len(ch.listeners) == 0 {
		h.forget(ch)
	}
	h.mu.Unlock()
	h.wake.Up()
	deliverAll(missed, Message{Missed: true})
}

// unaccepted handles channels whose SUBSCRIBE was answered with an error.
func (c *conn) unaccepted(chs []*channel, v verdict, moved string, err error) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	c.awaiting -= len(chs)
	for _, ch := range chs {
		if ch.conn != c || ch.state != sent {
			continue // it has left the connection meanwhile
		}
		if v == elsewhere {
			// MOVED names the new owner, ahead of what other nodes know. It is believed
			// for this slot only, and looked up when it does not help either.
			if ch.key.sharded {
				h.topo.owner[ch.slot] = 0
				if moved != "" && moved[0] != ':' { // ":port" is "this host", which rueidis does not resolve
					h.topo.set(int(ch.slot), int(ch.slot), moved)
				}
			}
			h.postpone(ch, err, now)
			continue
		}
		// The channel of a lock has its name in it, which may have any length.
		h.log.Warn("pubsub: subscribe refused", "channel", fmt.Sprintf("%.128s", ch.key.name), "error", err)
		h.tell(Event{State: Refused, Node: c.addr, Err: err})
		h.detach(ch)
		ch.refused = fmt.Errorf("%w: %w", ErrRefused, err)
		ch.notBefore = now.Add(h.refusalRetry + rand.N(h.refusalRetry/5+1))
		failWaiting(ch, ch.refused)
		// It stays, with or without listeners, to answer the next Listen.
	}
	h.wake.Up()
}

// lost is the end of a connection: its channels are placed anew, their listeners told.
func (h *Hub) lost(c *conn, err error) {
	h.mu.Lock()
	if h.closed || errors.Is(err, errIdle) { // Close has told the listeners; an idle one has none
		if c.proved {
			h.tell(Event{State: Closed, Node: c.addr})
		}
		h.mu.Unlock()
		return
	}
	now := time.Now()
	if n := h.nodes[c.addr]; n != nil && n.conn == c {
		n.conn = nil
		// A server that takes us in and throws us out at once is no better than
		// one that cannot be reached: only time clears the record.
		if c.proved && now.Sub(c.provedAt) > maxBackoff {
			n.fails = 0
		}
		n.fails++
		n.notBefore = now.Add(backoff(n.fails))
	}
	// A dead master's slots go to a replica sooner or later, and the plain channels can
	// go to any node now.
	h.topo.forgetNode(c.addr)
	if h.plain == c.addr {
		h.plain = ""
	}
	if c.proved {
		h.tell(Event{State: Lost, Node: c.addr, Err: err})
	} else {
		err = fmt.Errorf("cannot connect: %w", err)
	}
	h.tellEnd(c, err, now)
	var missed []*Listener
	for _, ch := range h.channels {
		if ch.conn != c {
			continue
		}
		news := ch.state == confirmed // else they know already
		h.detach(ch)
		if !c.proved {
			// The server cannot be reached, or does not answer: say so instead of
			// waiting for it, and let the caller try something else.
			failWaiting(ch, err)
		}
		if len(ch.listeners) == 0 {
			h.forget(ch)
			continue
		}
		if news {
			missed = append(missed, ch.listeners...) // all ready, since it was confirmed
		}
	}
	h.mu.Unlock()
	h.wake.Up()
	deliverAll(missed, Message{Missed: true})
}

// tellEnd has the Logger hear of the end of a connection. One that cannot be made is tried about once a second for as long
// as the server is away, which is no news each time. Caller holds mu.
func (h *Hub) tellEnd(c *conn, err error, now time.Time) {
	what := []any{"node", c.addr, "channels", c.n, "error", err}
	switch {
	case errors.Is(err, errReconnect): // the owner of the hub has ended it: no news for an operator
		h.log.Debug("pubsub: connection left", what...)
		return
	case !c.proved && h.told.has(c.addr, now):
		h.log.Debug("pubsub: still no connection", what...)
		return
	}
	h.log.Warn("pubsub: connection lost", what...)
}

// told is until when it is no news to the Logger that something does not work.
type told map[string]time.Time

// has reports whether that was told a short while ago. If not, it is told now.
func (t told) has(what string, now time.Time) bool {
	if now.Before(t[what]) {
		return true
	}
	maps.DeleteFunc(t, func(_ string, until time.Time) bool { return !now.Before(until) })
	t[what] = now.Add(tellInterval)
	return false
}
