package nemesis

import (
	"strconv"
	"strings"
	"time"

	"relock/internal/test/redistest"
)

// move chooses a slot of a lock, and a node that it may move to.
func (r *Redis) move() (slot int, to *redistest.Server) {
	slot = r.Slots[r.Rnd.IntN(len(r.Slots))]
	masters := r.Set.Masters()
	return slot, masters[r.Rnd.IntN(len(masters))]
}

func (r *Redis) migrate(*Fault) {
	slot, to := r.move()
	r.Set.Cluster.MigrateSlot(r.tb, slot, to.Addr)
}

// migrateHalf begins to move a slot, moves about half of its keys, and leaves it so for a while, as an
// operator whose tool was broken off: a lock and its line may be on different nodes meanwhile. Then the move
// is brought to its end. It is never taken back: what was made at the target meanwhile would be lost.
func (r *Redis) migrateHalf(*Fault) {
	slot, to := r.move()
	from := r.Set.Cluster.Node(r.Set.Cluster.SlotOwner(r.tb, slot))
	if from == to {
		return
	}
	number := strconv.Itoa(slot)
	_, port, _ := strings.Cut(to.Addr, ":")
	// The target first, see redistest.Cluster.MigrateSlot.
	r.command(to, "CLUSTER", "SETSLOT", number, "IMPORTING", r.id(from))
	r.command(from, "CLUSTER", "SETSLOT", number, "MIGRATING", r.id(to))
	keys, err := from.Do(r.tb, "CLUSTER", "GETKEYSINSLOT", number, "1000").AsStrSlice()
	if err != nil {
		r.tb.Logf("%s: GETKEYSINSLOT: %v", from.Addr, err)
	}
	for _, key := range keys {
		if r.Rnd.IntN(2) == 0 {
			r.command(from, "MIGRATE", "127.0.0.1", port, key, "0", "5000")
		}
	}
	time.Sleep(300*time.Millisecond + r.upTo(2500*time.Millisecond))
	r.Set.Cluster.MigrateSlot(r.tb, slot, to.Addr)
}

// id returns the name that the Cluster has for a node.
func (r *Redis) id(s *redistest.Server) string {
	name, err := s.Do(r.tb, "CLUSTER", "MYID").ToString()
	if err != nil {
		r.tb.Fatalf("%s: CLUSTER MYID: %v", s.Addr, err)
	}
	return name
}
