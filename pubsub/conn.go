package pubsub

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/clock"
)

// conn is one life of one subscriber connection. When it is lost the conn ends, its
// channels go back to the hub and a new conn is made; there is no reconnecting here.
//
// run's goroutine sends all commands, one round at a time, and does not begin a round
// before every channel of the one before is confirmed or refused. So a confirmation
// always belongs to the round under way, also when a channel is left and taken up again
// in quick succession.
type conn struct {
	hub  *Hub
	addr string
	wake clock.Wake    // there is work, or awaiting has become 0
	halt chan struct{} // closed by stop

	// Guarded by hub.mu.
	halted error      // why halt is closed; never changed after that
	subs   []*channel // to subscribe; entries may be stale, see take
	unsubs []*channel // to unsubscribe, before subs; they have left the hub
	n      int        // channels whose conn this is
	awaited
	proved   bool // the server has confirmed something
	provedAt time.Time
	seen     map[string]rueidis.Client // the deployment when it was dialled

	client rueidis.DedicatedClient // run's goroutine only
	lost   <-chan error            // run's goroutine only; nil once received from
	batch  []*Listener             // the reader's goroutine only: reused between messages
}

// awaited is what the server has still to say in the round under way. It is guarded by hub.mu.
type awaited struct {
	awaiting int         // confirmations outstanding
	silence  *time.Timer // ends the round, unless the server answers; nil between rounds
}

func newConn(h *Hub, addr string) *conn {
	return &conn{hub: h, addr: addr, wake: make(clock.Wake, 1), halt: make(chan struct{})}
}

// stop makes the connection end with an error, once no round is under way. Caller holds hub.mu.
func (c *conn) stop(why error) {
	if c.halted == nil {
		c.halted = why
		close(c.halt)
	}
}

// run is the connection's goroutine.
func (c *conn) run(ctx context.Context) {
	err := c.dial(ctx)
	if err == nil {
		err = c.serve(ctx)
	}
	// First the news, then the clean-up, which takes up to a second when the
	// server is silent.
	c.hub.lost(c, err)
	if c.client != nil {
		c.client.Close()
	}
}

// dial opens the connection. It cannot be interrupted; the client's dial timeout
// bounds it.
func (c *conn) dial(ctx context.Context) error {
	h := c.hub
	seen := h.client.Nodes()
	from := h.client
	if h.cluster {
		var err error
		if from, err = c.clusterNode(ctx, seen); err != nil {
			return err
		}
	}
	// The dial happens in here. It reports no error: a dead connection says so
	// through the hooks' channel.
	c.client, _ = from.Dedicate()
	c.lost = c.client.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      c.onMessage,
		OnSubscription: c.onSubscription,
	})
	select {
	case err := <-c.lost:
		return c.ended(err)
	default:
	}
	if ctx.Err() != nil {
		return ErrClosed
	}
	h.mu.Lock()
	c.seen = seen
	h.mu.Unlock()
	return nil
}

// clusterNode returns the client of one node. A Dedicate of the cluster client itself
// is pinned to one slot; a node's is not.
//
// A node that CLUSTER SLOTS names may be unknown to the client, which learns of new
// ones from redirections: a command on a key in one of its slots provokes one.
func (c *conn) clusterNode(ctx context.Context, seen map[string]rueidis.Client) (rueidis.Client, error) {
	h := c.hub
	if n, ok := seen[c.addr]; ok {
		return n, nil
	}
	h.mu.Lock()
	key := ""
	if len(c.subs) > 0 {
		key = c.subs[0].key.name
	}
	h.mu.Unlock()
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := h.client.Do(ask, h.client.B().Exists().Key(key).Build()).Error()
	if n, ok := h.client.Nodes()[c.addr]; ok {
		return n, nil
	}
	return nil, errors.Join(errMoved, err)
}

// ended turns what came out of the error channel into an error: the channel may
// also be closed without one.
func (c *conn) ended(err error) error {
	c.lost = nil
	if err == nil {
		err = errLost
	}
	return err
}

// serve sends what is to be sent until the connection ends.
func (c *conn) serve(ctx context.Context) error {
	for {
		unsubs, subs, empty := c.take()
		if len(unsubs)+len(subs) > 0 {
			if err := c.round(ctx, unsubs, subs); err != nil {
				return err
			}
			continue
		}
		if err := c.pause(ctx, empty); err != nil {
			return err
		}
	}
}

// pause waits for work. When nothing is subscribed it gives up after the linger.
func (c *conn) pause(ctx context.Context, empty bool) error {
	var expired <-chan time.Time
	if empty {
		t := time.NewTimer(c.hub.linger)
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-c.wake:
	case <-expired:
		if c.retire() {
			return errIdle
		}
	case err := <-c.lost:
		return c.ended(err)
	case <-c.halt:
		return c.halted
	case <-ctx.Done():
		return ErrClosed
	}
	return nil
}

// retire takes an idle connection out of the hub, unless it got work meanwhile.
func (c *conn) retire() bool {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.n > 0 || len(c.unsubs) > 0 {
		return false
	}
	if n := h.nodes[c.addr]; n != nil && n.conn == c {
		delete(h.nodes, c.addr)
	}
	h.wake.Up() // this may have been the last thing that kept the manager
	return true
}
