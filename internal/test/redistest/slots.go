package redistest

import (
	"cmp"
	"net"
	"strconv"
	"strings"
	"testing"
)

// SlotOwner returns the address of the node that serves the slot, as the first
// living node sees it.
func (c *Cluster) SlotOwner(tb testing.TB, slot int) (addr string) {
	tb.Helper()
	for _, s := range c.nodes {
		if owner := slotOwner(tb, s, slot); owner != "" {
			return owner
		}
	}
	tb.Fatalf("slot %d has no owner", slot)
	return ""
}

// slotOwner returns the owner of the slot as the node s sees it, or "".
func slotOwner(tb testing.TB, s *Server, slot int) string {
	tb.Helper()
	ranges, err := s.Do(tb, "CLUSTER", "SLOTS").ToArray()
	if err != nil {
		return ""
	}
	for _, r := range ranges {
		// Each is: first slot, last slot, [address, port, ...] of the master, ...
		entry, _ := r.ToArray()
		if len(entry) < 3 {
			continue
		}
		first, _ := entry[0].AsInt64()
		last, _ := entry[1].AsInt64()
		master, _ := entry[2].ToArray()
		if int64(slot) < first || int64(slot) > last || len(master) < 2 {
			continue
		}
		host, _ := master[0].ToString()
		port, _ := master[1].AsInt64()
		return net.JoinHostPort(host, strconv.FormatInt(port, 10))
	}
	return ""
}

// MigrateSlot moves the slot with its keys to the node with the address to, and
// returns once every node knows. It does nothing when the slot is there.
func (c *Cluster) MigrateSlot(tb testing.TB, slot int, to string) {
	tb.Helper()
	from := c.SlotOwner(tb, slot)
	if from == to {
		return
	}
	src, dst, number := c.Node(from), c.Node(to), strconv.Itoa(slot)
	srcID, dstID := id(tb, src), id(tb, dst)
	// The target first: as soon as the source is migrating it redirects clients
	// to the target, which turns them away unless it is importing.
	must(tb, dst, "CLUSTER", "SETSLOT", number, "IMPORTING", srcID)
	must(tb, src, "CLUSTER", "SETSLOT", number, "MIGRATING", dstID)
	for {
		// New keys go to the target now, so that this comes to an end.
		keys, err := src.Do(tb, "CLUSTER", "GETKEYSINSLOT", number, "100").AsStrSlice()
		if err != nil {
			tb.Fatalf("GETKEYSINSLOT: %v", err)
		}
		if len(keys) == 0 {
			break
		}
		must(tb, src, append([]string{"MIGRATE", "127.0.0.1", portOf(to), "", "0", "5000", "KEYS"}, keys...)...)
	}
	// The target first again, or for a while nobody would be the owner.
	must(tb, dst, "CLUSTER", "SETSLOT", number, "NODE", dstID)
	must(tb, src, "CLUSTER", "SETSLOT", number, "NODE", dstID)
	for _, s := range c.nodes {
		if s != src && s != dst {
			// Saves the wait for gossip; a dead node need not be told.
			_ = s.Do(tb, "CLUSTER", "SETSLOT", number, "NODE", dstID).Error()
		}
	}
	Eventually(tb, topologyTimeout, "all nodes know the slot's new owner", func() bool {
		for _, s := range c.nodes {
			if cmp.Or(slotOwner(tb, s, slot), to) != to {
				return false
			}
		}
		return true
	})
}

// id returns the cluster's name for the node.
func id(tb testing.TB, s *Server) string {
	tb.Helper()
	text, _ := must(tb, s, "CLUSTER", "MYID").ToString()
	return text
}

// Slot returns the cluster slot of the key: that of its hash tag when it has
// one, which is what stands between the first "{" and the first "}" after it,
// unless that is nothing.
func Slot(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	// CRC16 as of XMODEM: polynomial 0x1021, bit by bit, for this is not on a
	// hot path.
	var crc uint16
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}
