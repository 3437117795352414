package explore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/test/explore/memredis"
	"relock/internal/waiting"
)

// Sides are what package rwlock tells of both sides of a lock, as far as its private owners have one hold; its tests
// compare the two.
type Sides struct {
	Names     keyname.Names
	PollFloor time.Duration
}

// A Reader is the read side, and a Writer the write side.
type (
	Reader struct{ *Sides }
	Writer struct{ *Sides }
)

var (
	readAcquire  = load("rwlock/lua/acquire_read.lua")
	writeAcquire = load("rwlock/lua/acquire_write.lua")
	readRelease  = load("rwlock/lua/release_read.lua")
	writeRelease = load("rwlock/lua/release_write.lua")
	sidesRenew   = load("rwlock/lua/renew.lua")
	forceBoth    = load("rlock/lua/force_unlock.lua")
)

func (s *Sides) channel() string { return s.Names.Prefixed("redisson_rwlock") }

func (s *Sides) keys(more ...string) []string {
	return append([]string{s.Names.Key(), s.Names.Prefixed("relock_readers"), s.Names.Prefixed("relock_line1")}, more...)
}

func (s *Sides) timeout(owner string) string {
	return s.Names.Suffixed("") + owner + ":rwlock_timeout:1"
}

// Acquire is acquire_read.lua.
func (r Reader) Acquire(op *kind.Op) script.Command {
	args, l := []string{op.Owner, script.Millis(op.Lease + time.Millisecond)}, &op.Line
	if l.Head != "" {
		args = append(args, "", "0", "0", "", readerHead(l.Head), script.Flag(l.Listens), inbox.Prefix, r.Names.Counts,
			script.Itoa(int64(l.Waited/time.Millisecond)))
	}
	return script.Command{Script: readAcquire, Keys: r.keys(r.timeout(op.Owner)), Args: args}
}

// Acquire is acquire_write.lua.
func (w Writer) Acquire(op *kind.Op) script.Command {
	mark, l := "0", &op.Line
	if op.Wait {
		mark = script.Millis(2 * w.PollFloor)
	}
	args := []string{op.Owner, script.Millis(op.Lease), "", mark, w.Names.Suffixed("")}
	if l.Head != "" {
		args = append(args, "0", "0", "", writerHead(l.Head), script.Flag(l.Again), script.Flag(l.Listens), strconv.Itoa(l.Waiting),
			w.channel(), w.Names.Publish, w.Names.Counts, inbox.Prefix, script.Flag(l.Tells))
	}
	return script.Command{Script: writeAcquire, Keys: w.keys(), Args: args}
}

// Release is release_read.lua for all that an owner has, or for its entry.
func (r Reader) Release(op *kind.Op) script.Command {
	args := r.about(op)
	if op.Line.Head != "" {
		args = append(args, whose(op)+readerHead(op.Line.Head), "0", "0", "0", "0")
	}
	return script.Command{Script: readRelease, Keys: r.keys(r.timeout(op.Owner)), Args: args}
}

// Release is release_write.lua for all that an owner has, or for its entry.
func (w Writer) Release(op *kind.Op) script.Command {
	l := &op.Line
	args := append(w.about(op), whose(op), "0", "0", "0", "0", writerHead(l.Head), l.Enter, script.Flag(l.Listens), strconv.Itoa(l.Waiting))
	return script.Command{Script: writeRelease, Keys: w.keys(w.timeout(op.Owner)), Args: args}
}

func (s *Sides) about(op *kind.Op) []string {
	return []string{op.Owner, s.channel(), s.Names.Publish, s.Names.Counts, inbox.Prefix}
}

// whose says what ends: all that a private owner has, or nothing but its entry.
func whose(op *kind.Op) string {
	if op.All {
		return "2"
	}
	return "0"
}

func readerHead(head string) string { return "R" + head[1:] }

func writerHead(head string) string {
	if head == "" {
		return ""
	}
	return strings.NewReplacer("g", "V", "z", "U", "a", "W").Replace(head[:1]) + head[1:]
}

// Renew is that of a reader.
func (r Reader) Renew(op *kind.Op) script.Command {
	keys := []string{r.Names.Key(), r.Names.Prefixed("relock_readers"), r.Names.Prefixed("relock_rw_holds") + ":" + op.Owner, r.timeout(op.Owner)}
	return script.Command{Script: sidesRenew, Keys: keys, Args: []string{"r4:" + op.Owner}}
}

// Renew is that of a writer.
func (w Writer) Renew(op *kind.Op) script.Command {
	return script.Command{Script: sidesRenew, Keys: []string{w.Names.Key()}, Args: []string{"w1:" + op.Owner + ":write"}}
}

// readWrites is a setup of a read-write lock: sides has an r for each reader and a w for each writer, and behind those an R or W
// if there is one of Java's.
func readWrites(name string, faults int8, sides string, rounds ...int8) *Setup {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	set := newSetup(name, faults, rounds)
	// A writer that comes just when another one has left leaves a millisecond to the readers that waited for that.
	set.calmMost[0] = calmCost{int16(len(rounds)), int16(len(rounds)), int32(2 * len(rounds))}
	both := &Sides{Names: space.Names("lock"), PollFloor: ms(set.pollFloor)}
	set.key, set.channel = "lock", both.channel()
	sides, java := strings.TrimRight(sides, "RW"), strings.TrimLeft(sides, "rw")
	set.perms = slices.DeleteFunc(permutations(len(sides)), func(p []int) bool {
		for at, who := range p {
			if sides[at] != sides[who] || rounds[at] != rounds[who] {
				return true
			}
		}
		return false
	})
	set.clients = func(set *Setup) (all []client) {
		for i, side := range sides {
			r := &role{who: int8(i), id: ids[i : i+1], habits: habits{renews: true}, flaws: set.flaws()}
			r.want = waiting.Want{Session: r.id, Lease: ms(set.grantLease), Life: ms(set.life)}
			r.prim, r.mode = Writer{both}, 'x'
			if side == 'r' {
				r.prim, r.mode, r.reads = Reader{both}, 'r', true
			}
			all = append(all, &locker{role: r, rounds: rounds[i]})
		}
		return all
	}
	set.ofSides(both)
	switch java {
	case "R":
		set.withJava(javaSide{both, true}, 'r', 0, 1)
	case "W":
		set.withJava(javaSide{both, false}, 'x', 0, 1)
	}
	if java != "" {
		set.judge = nil // Java's come in as the lock is
	}
	return set
}

// ofSides is what is true of Redis's side of a read-write lock.
func (set *Setup) ofSides(both *Sides) {
	set.ofMutex(nil)
	set.owners = func(w *world) (owners []string) {
		for _, f := range w.redis.Fields("lock") {
			if owner := strings.TrimSuffix(f, ":write"); f != "mode" {
				owners = append(owners, owner)
			}
		}
		return owners
	}
	set.stands = func(w *world, who int, t trust) bool {
		field := w.clients[who].owner(t.num)
		if t.mode == 'x' {
			field += ":write"
		}
		_, ok := w.redis.Field("lock", field)
		mode, _ := w.redis.Field("lock", "mode")
		return ok && (mode == "write") == (t.mode == 'x')
	}
	set.endless = func(string) bool { return false }
	set.remains = func(k *memredis.Key) bool { return len(k.Members) == 1 && k.Members[0].Name == "m" } // of a writer
	set.force = func(owners []string) script.Command {
		f := &kind.Force{Owners: owners, ID: "1", Remembered: ms(5000)}
		return f.Command(script.Command{Script: forceBoth, Keys: both.keys(),
			Args: []string{both.channel(), both.Names.Publish, inbox.Prefix, both.Names.Counts, "1"}}, both.Names.Prefixed("relock_forced"))
	}
	set.judge = func() judge { return new(phases) }
}

// phases judges that a waiter is passed by one phase of the other side at most, as long as nothing has failed.
type phases struct {
	passed [len(ids)]int8 // how many phases have begun since it was refused first
	waits  [len(ids)]bool
	bars   [len(ids)]bool // a writer that was refused for readers: it keeps out those that come later
}

func (p *phases) copy() judge {
	q := *p
	return &q
}

func (p *phases) write(h *hasher) {
	h.sorted(len(ids), func(i int) {
		h.byte(h.perm[i])
		h.flag(p.waits[i])
		h.flag(p.bars[i])
		h.byte(byte(p.passed[i]))
	})
}

func (p *phases) ran(w *world, who int8, c *command, before *world) string {
	if w.faults < w.set.faults {
		*p = phases{}
		return ""
	}
	had, has := before.set.owners(before), w.set.owners(w)
	for i := range w.clients {
		mine := ids[i:i+1] + ":" + strconv.Itoa(int(w.clients[i].(*locker).num))
		p.waits[i] = p.waits[i] && !contains(has, mine)
		if !p.waits[i] {
			p.passed[i], p.bars[i] = 0, false
		}
	}
	if c.what == acquires && !contains(has, ids[who:who+1]+":"+strconv.Itoa(int(c.num))) {
		p.waits[who] = true
		p.bars[who] = p.bars[who] || !w.clients[who].(*locker).reads && w.mode() == "read"
	}
	for _, owner := range has {
		in, _, ok := claimOf(owner)
		if !ok || contains(had, owner) {
			continue
		}
		reader := w.clients[in].(*locker).reads
		if first := before.firstWaiter(w, append(has, had...)); !reader && first != "" && !before.standsBefore(owner, first) {
			return fmt.Sprintf("%s has the lock, and %s is the first of the line", owner, first)
		}
		if reader && slices.Contains(p.bars[:], true) && !before.mayCome(owner) {
			return owner + " has the read side, and a writer waits that was refused for readers before"
		}
		if reader && len(had) > 0 && before.mode() == "read" {
			continue // the phase had begun
		}
		for i := range w.clients {
			if !p.waits[i] || w.clients[i].(*locker).reads == reader {
				continue
			}
			if !reader && before.isLate(w.clients[i].owner(w.clients[i].(*locker).num)) { // the writers wait no longer
				continue
			}
			if p.passed[i]++; p.passed[i] > 1 {
				return fmt.Sprintf("%s waits, and %d phases of the other side have begun meanwhile", ids[i:i+1], p.passed[i])
			}
		}
	}
	return ""
}

// gate returns since when an owner stands in the line as a reader, and when the gate was opened last; 0: it does not, it was
// not. One that is late stands there since before the gate was opened.
func (w *world) gate(owner string) (since, opened int64) {
	for k := range w.redis.Keys {
		for _, m := range k.Members {
			switch {
			case m.Name == "t":
				opened = int64(m.Score - sinceScore['t'])
			case isReaders(m.Name) && ownerOf(m.Name) == owner:
				since = max(1, int64(m.Score-sinceScore['R']))
			}
		}
	}
	return since, opened
}

// mayCome reports whether a reader comes in although writers wait.
func (w *world) mayCome(owner string) bool {
	since, opened := w.gate(owner)
	return since > 0 && since <= opened
}

// isLate reports whether a reader stands in no line, or has not come in for as long as the lock was left to it.
func (w *world) isLate(owner string) bool {
	since, opened := w.gate(owner)
	return since == 0 || since <= opened && w.now() >= opened+5
}

func (w *world) mode() string {
	mode, _ := w.redis.Field("lock", "mode")
	return mode
}
