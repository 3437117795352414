package explore

import "relock/internal/test/explore/memredis"

// A client is a model of one process: what it sends, when, and what it makes of the answers. It is small, and
// follows the documented protocol, not the code of the engine.
type client interface {
	copy() client
	// own lists what it may do by itself now.
	own(now int64, buf []ownStep) []ownStep
	act(w *world, code int8)
	// answered takes in the answer to a command, which was executed at us, and unknown that there will be none.
	answered(w *world, c *command, r memredis.Reply, us int64)
	unknown(w *world, c *command)
	hear(w *world, p parcel)

	listens() bool             // to the lock's channel
	next(now int64) int64      // when its clock makes a difference next
	over() bool                // it has done all that it was to do
	claims() bool              // it has something, or is to have it
	owner(num int8) string     // of its claim
	trusts(now int64) trust    // what it believes to have
	lives(num int8) bool       // the claim is its, and may stand in Redis
	moments(at func(us int64)) // those of which the order makes a difference
	write(h *hasher)           // all that makes a difference
	describe(code int8) string // what a step of its own is
	sends(c *command) string   // what a command is
}

// An ownStep is something that a client does by itself.
type ownStep struct {
	code   int8
	cost   int8 // in faults
	prompt bool // it does that before time passes
	look   bool // it asks because its clock says so, not because it was told
}

// A trust is what a client believes to have.
type trust struct {
	mode byte // 0: nothing; 'x': alone; 'r': together with other readers; 'p': permits
	num  int8
	n    int // permits
}

// A judge follows what has happened, as far as a kind's rules are about more than a state. Its copy must not share
// what changes.
type judge interface {
	copy() judge
	ran(w *world, who int8, c *command, before *world) string // a command was executed; before is the state then
	write(h *hasher)
}
