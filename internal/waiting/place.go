package waiting

import "time"

const (
	// GrantLease is for how long Redis keeps a lock for a session to which a script has given it, until that
	// is heard of, at most. A process that stopped meanwhile costs the others so much.
	GrantLease = 1250 * time.Millisecond

	// ConfirmAfter is after how long a section on a lock that was given is confirmed by a renewal, if no
	// other caller of the session waits for the lock: shorter sections are released before.
	ConfirmAfter = 10 * time.Millisecond

	// SlowFor is for how long a session that has taken longer than SlowTaker from a message to its section
	// counts as a slow taker: as one that runs for 10 of every 100 ms. The lock is given to it while it runs
	// only: it asks every SlowLook, and releases pass it by when they have not heard of it just now.
	SlowFor      = time.Second
	SlowInterval = 500 * time.Microsecond
	// SlowTaker is at least twice a round trip.
	SlowTaker = 5 * time.Millisecond

	// Linger is longer than a channel stays subscribed to behind its last listener: twice pubsub.DefaultLinger.
	Linger = 1100 * time.Millisecond

	// MostWindow is for how long the lock is left to a session that polls, at most, before it comes.
	MostWindow = 100 * time.Millisecond

	// Silent is after how many pauses between two signs of life a session counts as silent.
	Silent = 2.5

	// leastLife keeps a session whose poll floor is short from being passed over when it is late.
	leastLife = time.Second

	// LongestInterval is after how long a session in a line is heard of again at the latest, whatever its poll floor:
	// what is left of dead sessions stands there for a multiple of that.
	LongestInterval = 4 * time.Minute

	// FirstPatience is for how long a session is the first of a line before it listens to the lock's
	// channel: on that others than the line's sessions say that they have left.
	FirstPatience = 5 * time.Millisecond
)

// Life is for how long a session that is heard of every so often counts as alive.
func Life(every time.Duration) time.Duration {
	return max(time.Duration(Silent*float64(every)), leastLife)
}

// A Place is what a session remembers of its entry in the line of one lock. C is the claim that the entry is
// for. The zero value stands in no line. It is guarded by the mutex of the lock.
type Place[C any] struct {
	Claim           *C            // that stands in the line, as far as is known; nil: none
	First           time.Duration // since when it is the first, as far as is known; 0: it is not
	Message         *Message      // what was said to a claim while an attempt of that was on its way
	MessageTo       *C            // that claim
	Given           *C            // that has the lock by such a message, and was not confirmed since
	AwaitsRenewal   *C            // that is held without a section until then: callers wait for it
	ReportedWaiting int           // how many callers wait, as Redis was told last; 0: nothing was said
	Clock           Clock
}

// Stands notes that the claim stands in the line, by the answer to an attempt; first says whether it is the
// first.
func (p *Place[C]) Stands(c *C, now time.Duration, first bool) {
	switch {
	case p.Claim != c, !first:
		p.First = 0
	}
	p.Claim = c
	if first && p.First == 0 {
		p.First = max(now, 1) // 0 is none
	}
}

// Lasts reports whether the session still stands in the line, as far as is known: one that was not heard of for a life
// may have been taken out, as one whose caller in front waits for another of the session.
func (p *Place[C]) Lasts(now, life time.Duration) bool {
	return p.Claim != nil && now-p.Clock.asked < life
}

// Over notes that a claim is over: nothing that was known of its place counts any more.
func (p *Place[C]) Over(c *C) {
	if p.Claim == c {
		p.Claim, p.First, p.ReportedWaiting = nil, 0, 0
	}
	if p.MessageTo == c {
		p.Message, p.MessageTo = nil, nil
	}
	if p.Given == c {
		p.Given = nil
	}
	if p.AwaitsRenewal == c {
		p.AwaitsRenewal = nil
	}
}

// A Clock tells by the session's clock when Redis did something, of which only Redis's own time is
// known. The zero value knows nothing.
type Clock struct {
	Trip   time.Duration // how long the last answer took
	asked  time.Duration // when Redis's clock was asked for,
	ms     int64         // and what it said
	doubts uint32        // the session's count then
}

// Read takes in what Redis's clock said when it was asked for at a time, and when the answer came. An answer of 0 says
// nothing of the clock.
func (c *Clock) Read(asked, answered time.Duration, ms int64, doubts uint32) {
	c.Trip = answered - asked
	if ms > 0 {
		c.asked, c.ms, c.doubts = asked, ms, doubts
	}
}

// When returns when that was which happened at ms by Redis's clock, or earlier. Since that clock was
// read, at least as much time has passed here since it was asked for. It is not known if the clock was read
// under another count of doubts, for another server may have another clock; nor if it would be later than
// now, for then the clock of Redis has leapt; nor if the clock has been read since, for what was true then may
// be over: the reply with the later time was a refusal.
func (c *Clock) When(ms int64, now time.Duration, doubts uint32) (at time.Duration, known bool) {
	at = c.asked + time.Duration(ms-c.ms-1)*time.Millisecond
	return at, c.ms > 0 && c.doubts == doubts && at <= now && ms >= c.ms
}
