package waiting

import "time"

const (
	// GrantLease is the lease of a lock that a script has granted to another session, at most, until that session
	// confirms it. A process that has stopped holds the others up for so long.
	GrantLease = 1250 * time.Millisecond

	// ConfirmAfter is after how long a section on a lock that was granted so is confirmed by a renewal, if no
	// other caller of the session waits for the lock: shorter sections are released before.
	ConfirmAfter = 10 * time.Millisecond

	// SlowFor is for how long a session that has taken longer than SlowTaker from a message to its section
	// counts as a slow taker, such as a process that runs for 10 of every 100 ms. It gets the lock only while it
	// runs: as the first it asks every SlowInterval, and releases pass it by unless it has just asked.
	SlowFor      = time.Second
	SlowInterval = 500 * time.Microsecond
	// SlowTaker counts where two round trips are shorter.
	SlowTaker = 5 * time.Millisecond

	// Linger is longer than a channel stays subscribed after its last listener has left: more than twice pubsub.DefaultLinger.
	Linger = 1100 * time.Millisecond

	// MostWindow is for how long the lock is left to a session that polls, at most, before it comes.
	MostWindow = 100 * time.Millisecond

	// Silent is after how many pauses between two signs of life a session counts as silent.
	Silent = 2.5

	// leastLife keeps a session whose poll floor is short from being passed over when it is late.
	leastLife = time.Second

	// LongestInterval is the longest time between two signs of life of a session in a line, whatever its poll floor:
	// entries of dead sessions stay for a multiple of that.
	LongestInterval = 4 * time.Minute

	// FirstPatience is for how long a session is the first of a line before it listens to the lock's
	// channel, on which clients outside the line publish their releases.
	FirstPatience = 5 * time.Millisecond
)

// Life is for how long a session counts as alive after each sign of life, if it sends one every so often.
func Life(every time.Duration) time.Duration {
	return max(time.Duration(Silent*float64(every)), leastLife)
}

// A Place is what a session remembers of its entry in the line of one lock. C is the claim that the entry is
// for. The zero value stands in no line. It is guarded by the mutex of the lock.
type Place[C any] struct {
	Claim           *C            // that stands in the line, as far as is known; nil: none
	First           time.Duration // since when it is the first, as far as is known; 0: it is not
	Message         *Message      // that came for a claim while an attempt of the claim was under way
	MessageTo       *C            // that claim
	Unconfirmed     *C            // that was granted by a message, and was not confirmed since
	Behind          map[*C]string // the claims whose entries stand in the line although Redis has let them in, and how these begin
	ReportedWaiting int           // how many callers wait, by the last report to Redis; 0: none was sent
	Clock           Clock
}

// Stands notes that the claim stands in the line, by the answer to an attempt; first says whether it is the
// first.
func (p *Place[C]) Stands(c *C, now time.Duration, first bool) {
	if p.Claim != c || !first {
		p.First = 0
	}
	p.Claim = c
	if first && p.First == 0 {
		p.First = max(now, 1) // 0 is none
	}
}

// Over forgets a claim that is over.
func (p *Place[C]) Over(c *C) {
	if p.Claim == c {
		p.Claim, p.First, p.ReportedWaiting = nil, 0, 0
	}
	if p.MessageTo == c {
		p.Message, p.MessageTo = nil, nil
	}
	if p.Unconfirmed == c {
		p.Unconfirmed = nil
	}
	delete(p.Behind, c)
}

// A Clock translates times of Redis's clock to the session's clock. The zero value knows
// nothing.
type Clock struct {
	Trip   time.Duration // how long the last answer took
	Asked  time.Duration // when Redis's clock was asked for,
	ms     int64         // and what it said
	doubts uint32        // the session's count of doubts then
}

// Read notes a reading of Redis's clock: when the command was sent, when the answer came, and the time in it. 0 is no
// reading.
func (c *Clock) Read(asked, answered time.Duration, ms int64, doubts uint32) {
	c.Trip = answered - asked
	if ms > 0 {
		c.Asked, c.ms, c.doubts = asked, ms, doubts
	}
}

// When returns the session's time of an event that happened at ms by Redis's clock, or an earlier time: it counts
// from when the reading was asked for. The time is not known in three cases. If the clock was read under another
// count of doubts, another server may have another clock. If the result would be later than now, the clock of
// Redis has leapt. If the clock has been read after ms, that reply was a refusal, so the event may be out of date.
func (c *Clock) When(ms int64, now time.Duration, doubts uint32) (at time.Duration, known bool) {
	at = c.Asked + time.Duration(ms-c.ms-1)*time.Millisecond
	return at, c.ms > 0 && c.doubts == doubts && at <= now && ms >= c.ms
}
