package pubsub

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

const (
	slots = 16384

	// askTimeout bounds one question about the topology to one node; the next
	// node is asked after that.
	askTimeout = time.Second

	// refreshInterval is the least time between two readings of the topology. A
	// resharding moves slot after slot; each must not cost a CLUSTER SLOTS.
	refreshInterval = 50 * time.Millisecond
)

// What Hub.sharded can be.
const (
	shardedUnknown = iota
	shardedNo
	shardedYes
)

// topology is the hub's map of slots to nodes, used for sharded channels only.
// Guarded by Hub.mu.
type topology struct {
	owner   [slots]uint16 // index into addrs, plus 1; 0 is unknown
	addrs   []string
	wanted  bool      // a channel needs an unknown slot
	asked   time.Time // when it was read last
	failed  int       // readings in a row that no node answered
	pending time.Time // after failures: not before this
}

// lookup returns the address of slot's owner.
func (t *topology) lookup(slot uint16) (string, bool) {
	if i := t.owner[slot]; i > 0 {
		return t.addrs[i-1], true
	}
	return "", false
}

// set makes addr the owner of slots from to to.
func (t *topology) set(from, to int, addr string) {
	i := slices.Index(t.addrs, addr)
	if i < 0 {
		i = len(t.addrs)
		t.addrs = append(t.addrs, addr)
	}
	for s := max(0, from); s <= to && s < slots; s++ {
		t.owner[s] = uint16(i + 1)
	}
}

// forgetNode makes the owner of all of addr's slots unknown, so that they are looked
// up again: it may have been replaced.
func (t *topology) forgetNode(addr string) {
	i := slices.Index(t.addrs, addr)
	if i < 0 {
		return
	}
	for s := range t.owner {
		if t.owner[s] == uint16(i+1) {
			t.owner[s] = 0
		}
	}
}

// nextRefresh is the earliest time of the next reading.
func (t *topology) nextRefresh() time.Time {
	next := t.asked.Add(refreshInterval)
	if t.pending.After(next) {
		next = t.pending
	}
	return next
}

// Sharded reports whether Listen subscribes to sharded channels, so that publishers
// must use SPUBLISH. That is so in a Cluster whose nodes know PUBSUB SHARDNUMSUB
// (Redis 7 and later), the rule that Redisson follows. In a Cluster the first call
// asks a node, within ctx; the answer is kept for the hub's lifetime.
func (h *Hub) Sharded(ctx context.Context) (bool, error) {
	if h.bad != nil {
		return false, h.bad
	}
	if !h.cluster {
		return false, nil
	}
	if v := h.sharded.Load(); v != shardedUnknown {
		return v == shardedYes, nil
	}
	select {
	case h.shardSem <- struct{}{}:
		defer func() { <-h.shardSem }()
	case <-h.ctx.Done():
		return false, ErrClosed
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if v := h.sharded.Load(); v != shardedUnknown {
		return v == shardedYes, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	_, _, err := h.ask(ctx, "PUBSUB", "SHARDNUMSUB")
	answer := shardedYes
	if err != nil {
		if h.ctx.Err() != nil {
			return false, ErrClosed
		}
		if saysNothing(err) {
			return false, err // ask again next time
		}
		answer = shardedNo
	}
	h.sharded.Store(int32(answer))
	return answer == shardedYes, nil
}

// ask sends a command to one node after the other, in random order, until one
// answers, be it with an error that says something. addr is the one that did.
func (h *Hub) ask(ctx context.Context, args ...string) (res rueidis.RedisMessage, addr string, err error) {
	nodes := h.client.Nodes()
	addrs := slices.Collect(maps.Keys(nodes))
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	err = errors.New("pubsub: the client knows no node")
	for _, addr = range addrs {
		one, cancel := context.WithTimeout(ctx, askTimeout)
		// Arbitrary without ReadOnly: rueidis does not resend it to a dead node
		// until the time is over.
		res, err = nodes[addr].Do(one, h.client.B().Arbitrary(args...).Build()).ToMessage()
		cancel()
		if !saysNothing(err) {
			return res, addr, err
		}
		if ctx.Err() != nil {
			return res, addr, ctx.Err()
		}
	}
	return res, "", err
}

// slotOf computes the hash slot of a channel, hash tags included, by way of the
// client's command builder. Cluster only.
func (h *Hub) slotOf(name string) uint16 {
	cmd := h.client.B().Ssubscribe().Channel(name).Build()
	return cmd.Slot()
}

// route returns the address of the node that is to carry ch; false when that is not
// known yet. Caller holds mu.
func (h *Hub) route(ch *channel) (string, bool) {
	switch {
	case !h.cluster:
		return "", true
	case ch.key.sharded:
		addr, ok := h.topo.lookup(ch.slot)
		if !ok {
			h.topo.wanted = true
		}
		return addr, ok
	default:
		return h.routePlain()
	}
}

// routePlain picks the one node that carries all plain channels: the one from before
// until its connection is lost, else one that is connected already, else any. Caller
// holds mu.
func (h *Hub) routePlain() (string, bool) {
	if h.plain != "" {
		return h.plain, true
	}
	var fresh, soonest string
	for addr := range h.client.Nodes() { // in random order
		switch n := h.nodes[addr]; {
		case n == nil || n.conn == nil && n.fails == 0:
			fresh = addr
		case n.conn != nil && n.conn.proved:
			h.plain = addr
			return addr, true
		case soonest == "" || n.notBefore.Before(h.nodes[soonest].notBefore):
			soonest = addr
		}
	}
	h.plain = fresh
	if fresh == "" {
		h.plain = soonest // all are in trouble; place observes its back-off
	}
	return h.plain, h.plain != ""
}

// topologyUnknown is what the Logger is told of in place of an address.
const topologyUnknown = "topology"

// refreshDue reports whether the topology is to be read now.
func (h *Hub) refreshDue() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.topo.wanted && !h.closed && !time.Now().Before(h.topo.nextRefresh())
}

// refresh reads the topology from some node. Channels that are still without an owner
// afterwards are postponed.
func (h *Hub) refresh(ctx context.Context) {
	res, from, err := h.ask(ctx, "CLUSTER", "SLOTS")
	var entries []rueidis.RedisMessage
	if err == nil {
		entries, err = res.ToArray()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	now := time.Now()
	t := &h.topo
	t.asked = now
	if err != nil {
		t.failed++
		t.pending = now.Add(backoff(t.failed))
		if h.told.has(topologyUnknown, now) {
			h.log.Debug("pubsub: still no topology", "error", err)
		} else {
			h.log.Warn("pubsub: cannot read the cluster's topology", "error", err)
		}
	} else {
		delete(h.told, topologyUnknown)
		t.failed, t.wanted = 0, false
		t.read(entries, from)
		err = errNoOwner
	}
	for ch := range h.unplaced {
		if !ch.key.sharded || now.Before(ch.notBefore) {
			continue
		}
		if _, ok := t.lookup(ch.slot); ok {
			continue
		}
		if t.failed > 0 {
			failWaiting(ch, err) // no node can be reached, which is what they wait to hear
		}
		h.postpone(ch, err, now)
	}
}

// read replaces the map by the answer of CLUSTER SLOTS that the node at from gave.
func (t *topology) read(entries []rueidis.RedisMessage, from string) {
	clear(t.owner[:])
	t.addrs = t.addrs[:0]
	for i := range entries {
		e, err := entries[i].ToArray()
		if err != nil || len(e) < 3 {
			continue
		}
		lo, err1 := e[0].AsInt64()
		hi, err2 := e[1].AsInt64()
		master, err3 := e[2].ToArray()
		if errors.Join(err1, err2, err3) != nil || len(master) < 2 {
			continue
		}
		host, _ := master[0].ToString() // null: "the node you asked"
		port, err := master[1].AsInt64()
		if err != nil || host == "?" {
			continue
		}
		if host == "" {
			host, _, _ = net.SplitHostPort(from)
		}
		// The same spelling as rueidis's, whose Nodes() is asked for it.
		t.set(int(lo), int(hi), net.JoinHostPort(host, strconv.FormatInt(port, 10)))
	}
}

// sameAddresses reports whether two answers of Nodes name the same nodes.
func sameAddresses(a, b map[string]rueidis.Client) bool {
	return maps.EqualFunc(a, b, func(rueidis.Client, rueidis.Client) bool { return true }) // the keys only
}
