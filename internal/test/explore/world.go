package explore

import (
	"math"
	"slices"
	"strings"

	"relock/internal/inbox"
	"relock/internal/script"
	"relock/internal/test/explore/memredis"
)

const (
	// epoch is when an exploration begins, by Redis's clock, in ms: 13 digits, and 16 in µs, so that what
	// the hash reads can tell times by their lengths.
	epoch = 1_700_000_000_000
	never = math.MaxInt64
	// ids are those of the sessions: letters that stand nowhere else in what is sent.
	ids = "XYZ"
)

// A command is a call of a script on its way to Redis, and what its session notes of it.
type command struct {
	script.Command
	what    int8 // what it is for its client
	num     int8 // of the claim
	anew    int8 // of the claim that a release enters, 0: none
	resent  bool
	foreign bool  // of another library
	sent    int64 // in ms
}

// An answer is on its way from Redis.
type answer struct {
	*command
	us    int64 // when it was executed
	reply memredis.Reply
}

// A parcel is a message on its way to a session.
type parcel struct {
	text     string
	us       int64 // when it was published
	fromLock bool  // by the lock's channel, not the session's own
}

// state is how a session's process fares.
type state int8

const (
	alive    state = iota
	stopped        // it does nothing, and comes back
	dead           // its connections are closed
	vanished       // it does nothing for ever, and Redis has not noticed
)

// A wire is what connects one client to Redis. What is in the slices never changes.
type wire struct {
	state   state
	cmds    []*command // executed in their order
	answers []answer
	parcels []parcel
}

// A world is one state of everything: Redis, the clients, and all that is on its way.
type world struct {
	set      *Setup
	redis    memredis.Redis
	clients  []client
	wires    []wire
	late     []lateCommand // given up by their clients, and not executed yet
	faults   int8          // that may still happen
	taints   taint
	robbed   [len(ids)]int8 // the last claim of a client whose hold was deleted or forced, until it has heard of that or asked
	robbedAt [len(ids)]int64
	tokens   int64  // the greatest with which a section has begun
	judge    judge  // of the kind
	wrong    string // what a step has found to be wrong
}

type lateCommand struct {
	who int8
	*command
}

// taint says what has happened that explains what is left in Redis.
type taint int8

const (
	ranLate taint = 1 << iota
	died
	evicted // the lock was deleted or forced
)

// copy returns a world that steps of the other one do not change.
func (w *world) copy() *world {
	c := *w
	c.redis = w.redis.Copy()
	c.clients = make([]client, len(w.clients))
	for i := range w.clients {
		c.clients[i] = w.clients[i].copy()
	}
	c.wires, c.late = slices.Clone(w.wires), slices.Clone(w.late)
	if w.judge != nil {
		c.judge = w.judge.copy()
	}
	return &c
}

// now is the time in ms; all clocks run alike.
func (w *world) now() int64 { return w.redis.Millis() }

// send puts a command on a client's wire.
func (w *world) send(who int8, c *command) {
	c.sent = w.now()
	wi := &w.wires[who]
	wi.cmds = append(slices.Clip(wi.cmds), c)
}

// fail notes that something is wrong.
func (w *world) fail(what string) {
	if w.wrong == "" {
		w.wrong = what
	}
}

// listeners is how many connections Redis believes to be subscribed.
func (w *world) listeners(channel string) (n int) {
	if id, ok := strings.CutPrefix(channel, inbox.Prefix); ok {
		if who := strings.Index(ids, id); who >= 0 && who < len(w.wires) && w.wires[who].state != dead && !w.foreign(who) {
			return 1
		}
		return 0
	}
	for i := range w.clients {
		if channel == w.set.channel && w.clients[i].listens() && w.wires[i].state != dead {
			n++
		}
	}
	return n
}

// moment is when the next command is executed. Where others than sessions wait, a script leaves the lock to them as often as
// they are due: the remainder of the time by how many wait decides. With chance 0 it is left to one, and with 1, if
// one or two sessions wait, it is not.
func (w *world) moment(chance int8) int64 {
	us := w.redis.Micros() + 1
	if !w.set.others {
		return us
	}
	for us%6 != 5*int64(chance) {
		us++
	}
	return us
}

// run executes a script, when chance says. known says that this very run has been made before.
func (w *world) run(rs *runs, c *script.Command, chance int8) (r memredis.Reply, known bool) {
	w.redis.SetMicros(w.moment(chance))
	src := c.Script.Source()
	if w.set.mutant != nil {
		src = w.set.mutant.of(src)
	}
	return rs.run(w, src, c)
}

// deliver puts what was published on the wires.
func (w *world) deliver() {
	for _, m := range w.redis.Published {
		id, own := strings.CutPrefix(m.Channel, inbox.Prefix)
		for i := range w.wires {
			if w.wires[i].state == dead || w.wires[i].state == vanished {
				continue
			}
			if own && id == ids[i:i+1] && !w.foreign(i) || !own && m.Channel == w.set.channel && w.clients[i].listens() {
				w.wires[i].parcels = append(slices.Clip(w.wires[i].parcels), parcel{m.Payload, w.redis.Micros(), !own})
			}
		}
	}
	w.redis.Published = nil
}

// claimOf takes an owner apart; ok is false for one that is no session's.
func claimOf(owner string) (who int, num int8, ok bool) {
	if len(owner) < 3 || owner[1] != ':' {
		return 0, 0, false
	}
	who = strings.IndexByte(ids, owner[0])
	for _, d := range owner[2:] {
		if d < '0' || d > '9' {
			return 0, 0, false
		}
		num = num*10 + int8(d-'0')
	}
	return who, num, who >= 0
}
