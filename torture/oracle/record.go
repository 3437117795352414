package oracle

import (
	"sync/atomic"
	"time"
)

// Kind is what a record is about.
type Kind uint8

// The kinds of records. 0 is a place in the file that was never finished.
const (
	Section Kind = iota + 1 // one acquisition of a lock, from the call to the unlock
	Count                   // one call of a counter
	Stall                   // the process did not run from Call to End
	Odd                     // something that must never happen; the text is on stderr
	Probe                   // one attempt to get a lock after the faults had ended
)

// Outcome is how a record has ended.
type Outcome uint8

// The outcomes. A record of a process that was killed stays Pending.
const (
	Pending  Outcome = iota
	Refused          // not acquired; nothing is held
	Held             // acquired, and not unlocked yet
	Released         // unlocked without an error
	Lost             // the section's context ended because the lock was lost
	Expired          // the end of a fixed lease, or of the context that was given
	Closed           // the session was closed
	Done             // a call of a counter that counted
	Unknown          // a call of a counter that may have counted
	Failed           // an error that is none of these
)

// Op is which call of a counter a record is about.
type Op uint8

// The calls of a counter.
const (
	OpAcquire Op = iota + 1
	OpRelease
	OpAdd
	OpDrain
)

// Flags of a section.
const (
	Read   uint8 = 1 << iota // of the read side
	Fixed                    // with a fixed lease
	Nested                   // had nested holds
	Try                      // did not wait
	Late                     // the loss was noticed by Unlock alone
	Outage                   // a call said that Redis is unavailable, and not because its wait ended
	Joint                    // taken at once with other locks, in whose sections it waited for its turn
)

// Record is what happened once. All fields are 64 bits wide and written atomically, so that a
// process may be killed between any two instructions.
type Record struct {
	head atomic.Uint64 // kind, outcome, op, flags; written last when the record begins
	what atomic.Uint64 // lock in the upper half, owner in the lower one
	n    atomic.Int64  // permits, or what a counter's call was about
	call atomic.Int64  // when the call began
	got  atomic.Int64  // when it returned
	in   atomic.Int64  // first time at which the section certainly stood; 0: never
	safe atomic.Int64  // last time at which it stood by its context and by its lease
	seen atomic.Int64  // last time at which it stood by its context
	end  atomic.Int64  // when its end was noticed, or the call of Unlock began
	over atomic.Int64  // when the call of Unlock returned
	tok  atomic.Int64  // fencing token
	change
}

// change is what a section did to the set of its lock, see Set.
type change struct {
	id       atomic.Uint64 // of this record among all of a round; never 0
	saw      atomic.Uint64 // the head of the set when the section had begun
	tried    atomic.Int64  // when the section was about to change the set; 0: it did not
	replaced atomic.Uint64 // the head that its change has replaced; of a reader, the head at its end
	added    atomic.Int64  // a time at which the section stood, after the change; 0: it was not seen to stand
}

func head(k Kind, o Outcome, op Op, flags uint8) uint64 {
	return uint64(k) | uint64(o)<<8 | uint64(op)<<16 | uint64(flags)<<24
}

// Settle notes the outcome.
func (r *Record) Settle(o Outcome) { r.head.Store(r.head.Load()&^0xff00 | uint64(o)<<8) }

// Mark adds a flag.
func (r *Record) Mark(flag uint8) { r.head.Store(r.head.Load() | uint64(flag)<<24) }

// Returned notes that the call has returned.
func (r *Record) Returned() { r.got.Store(int64(Now())) }

// Count notes a number: permits, or what a call of a counter returned.
func (r *Record) Count(n int64) { r.n.Store(n) }

// Token notes the fencing token.
func (r *Record) Token(t int64) { r.tok.Store(t) }

// Ending notes that the section's end was noticed, or that it is about to be unlocked.
func (r *Record) Ending() { r.end.Store(int64(Now())) }

// Over notes that the section has been unlocked.
func (r *Record) Over() { r.over.Store(int64(Now())) }

// Inside asks whether the section stands, and notes the time before the question if it does.
// alive is by the section's context, and left by what remains of its lease.
func (r *Record) Inside(alive func() bool, left func() time.Duration) bool {
	now := int64(Now())
	if !alive() {
		return false
	}
	r.seen.Store(now)
	if left() > 0 {
		r.safe.Store(now)
		if r.in.Load() == 0 {
			r.in.Store(now)
		}
	}
	return true
}

// Entry is a record as it is read.
type Entry struct {
	Kind    Kind
	Outcome Outcome
	Op      Op
	Flags   uint8
	Lock    int
	Owner   int // 0: a private owner
	N       int64
	Token   int64
	Times
	Change
}

// Times are those of a [Record].
type Times struct {
	Call, Got, In, Safe, Seen, End, Over time.Duration
}

// Change is what a section did to the set of its lock, see [Set].
type Change struct {
	ID, Saw, Replaced uint64
	Tried, Added      time.Duration
}

// Has reports whether a flag is set.
func (e *Entry) Has(flag uint8) bool { return e.Flags&flag != 0 }

func (r *Record) read() Entry {
	h, w := r.head.Load(), r.what.Load()
	at := func(v *atomic.Int64) time.Duration { return time.Duration(v.Load()) }
	return Entry{
		Kind: Kind(h), Outcome: Outcome(h >> 8), Op: Op(h >> 16), Flags: uint8(h >> 24),
		Lock: int(w >> 32), Owner: int(uint32(w)), N: r.n.Load(), Token: r.tok.Load(),
		Times:  Times{Call: at(&r.call), Got: at(&r.got), In: at(&r.in), Safe: at(&r.safe), Seen: at(&r.seen), End: at(&r.end), Over: at(&r.over)},
		Change: Change{ID: r.id.Load(), Saw: r.saw.Load(), Replaced: r.replaced.Load(), Tried: at(&r.tried), Added: at(&r.added)},
	}
}
