package rlock

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// A Queuer is a Primitive whose waiters do not stand in the session's line but queue in
// Redis, each with a place of its own, so that one order holds for all sessions. Its
// scripts let the first waiter in themselves and tell its session on the session's own
// channel, with the message "grant:<Redis's time in ms>:<token or 0>:<Op.ID>". So the
// waiter has the lock with no further round trip; the session confirms it by a renewal,
// until when Redis keeps it for no longer than Claim.
//
// Traits must have ByID and Marks: a refused attempt with Op.Wait has queued, and a
// Release takes the place away. The reply of such a refusal is {0, ms, Redis's time in
// ms, 0}.
type Queuer interface {
	Primitive

	// Place is how a waiter is called in the queue.
	Place(owner, id string) string

	// Beat is the script call that keeps these places for one Config.QueueLease more,
	// and lets somebody in if the lock is free. Its reply has a number for each place:
	// 0, ask now (the place is gone, or the lock is had), or the milliseconds after
	// which to ask at the latest, -1 if unknown; and at the end Redis's time in ms.
	Beat(places []string) Command

	// Claim is for how long Redis keeps what it has given to a waiter that was not
	// heard of since.
	Claim() time.Duration
}

// The session is heard of every 5/24 of Config.QueueLease, or poll floor. A waiter that
// missed two beats, 11/24, is passed over, a claim outlives one beat (QueueClaim). So
// when everybody in front of a waiter has died, he is in after 22/24 of a QueueLease at
// the latest: two beats until they count as silent, one claim that was given just before,
// and a beat of his own. With the default of 5 s a session sends less than one command a
// second for each lock it waits for.
func (s *Session) beatEvery() time.Duration {
	return max(min(s.cfg.QueueLease/24*5, s.cfg.PollFloor), time.Millisecond)
}

// QueueClaim is the time in which a waiter that was let in has to be heard of.
func (s *Session) QueueClaim() time.Duration { return s.cfg.QueueLease / 4 }

// beatBatch is how many places one script call keeps.
const beatBatch = 200

// A place is where one acquisition waits in a queue in Redis. Its fields but the first
// group are guarded by Session.mu.
type place struct {
	a    *acquisition
	q    Queuer
	name string

	turn *turn         // the lock was given to it
	look bool          // ask Redis
	due  time.Duration // when it must be heard of again; never while that is under way
	// An answer of Redis: when it was asked, and what its clock said in between.
	asked time.Duration
	clock int64
}

// A turn is a message that the lock was given to a waiter.
type turn struct {
	at    int64 // by Redis's clock, in ms
	token int64
}

// queue makes a place for a, on the books before the first attempt is sent. Session.mu
// must be held.
func (s *Session) queue(a *acquisition, q Queuer) *place {
	a.w.wake = make(chan struct{}, 1)
	pl := &place{a: a, q: q, name: q.Place(a.op.Owner, a.op.ID), look: true, due: never}
	if a.mayWait {
		s.places[a.op.ID] = pl
	}
	return pl
}

func (pl *place) mayTry() bool {
	s := pl.a.s
	s.mu.Lock()
	defer s.unlock()
	look := pl.look
	pl.look = false
	return look
}

func (pl *place) listen(context.Context) {}

// refused: it stands in the queue now.
func (pl *place) refused(g grant) {
	s := pl.a.s
	s.mu.Lock()
	defer s.unlock()
	s.heardOf(pl, g.sent, g.value, g.token)
}

// failed: it may stand in the queue or not, or have the lock; ask again.
func (pl *place) failed() {
	s := pl.a.s
	s.mu.Lock()
	defer s.unlock()
	pl.look = true
}

// heardOf notes an answer about a place. Session.mu must be held.
func (s *Session) heardOf(pl *place, asked time.Duration, ms, clock int64) {
	pl.asked, pl.clock = asked, clock
	at := asked + s.beatEvery()
	if ms >= 0 {
		at = min(at, asked+time.Duration(ms+1)*time.Millisecond)
	}
	s.beatAt(pl, max(at, s.now()+minPause))
}

// beatAt sets when pl must be heard of. Session.mu must be held.
func (s *Session) beatAt(pl *place, at time.Duration) {
	pl.due = at
	s.placesDue = min(s.placesDue, at)
	s.wakeWatchdog(at)
}

// park waits until it is this one's turn, or until Redis must be asked.
func (pl *place) park(ctx context.Context, _ time.Duration) (g grant, ask bool, err error) {
	s := pl.a.s
	for {
		s.mu.Lock()
		tn, look := pl.turn, pl.look
		pl.turn, pl.look = nil, false
		if tn != nil {
			if g, ok := pl.take(tn); ok {
				s.unlock()
				return g, false, nil
			}
			look = true
		}
		s.unlock()
		if look {
			return grant{}, true, nil
		}
		select {
		case <-pl.a.w.wake:
		case <-ctx.Done():
			return grant{}, false, ctx.Err()
		}
	}
}

// take makes a grant of a message, if that can be trusted for a while. When Redis sent it
// is known by Redis's clock only. Since that clock was read, for an earlier answer, at
// least as much time has passed here since that was asked for. A fixed lease begins now,
// and so needs a word with Redis. Session.mu must be held.
func (pl *place) take(tn *turn) (grant, bool) {
	s := pl.a.s
	given := pl.asked + time.Duration(tn.at-pl.clock-1)*time.Millisecond
	given = min(given, s.now())
	g := grant{status: granted, value: 1, token: tn.token, changed: true, sent: given, claim: pl.q.Claim()}
	return g, pl.clock > 0 && pl.a.o.lease == 0 && s.now() < given+s.trustIn(g.claim)/2
}

// leaveQueue takes a place off the books. Session.mu must be held.
func (s *Session) leaveQueue(pl *place) {
	pl.due = never
	if s.places[pl.a.op.ID] == pl {
		delete(s.places, pl.a.op.ID)
	}
}

// grantMessage begins the message of a script that has let a waiter in.
const grantMessage = "grant:"

// gotTurn takes such a message. One that nobody waits for belongs to a waiter that has
// just left: his release passes the lock on.
func (s *Session) gotTurn(payload string) (ok bool) {
	rest, ok1 := strings.CutPrefix(payload, grantMessage)
	at, rest, ok2 := strings.Cut(rest, ":")
	token, id, ok3 := strings.Cut(rest, ":")
	clock, err1 := strconv.ParseInt(at, 10, 64)
	drawn, err2 := strconv.ParseInt(token, 10, 64)
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil {
		return false
	}
	s.mu.Lock()
	defer s.unlock()
	if pl := s.places[id]; pl != nil {
		pl.turn = &turn{at: clock, token: drawn}
		pl.a.w.signal()
	}
	return true
}

// beatAll has all places heard of at once: the session may have missed a message.
// Session.mu must be held.
func (s *Session) beatAll() {
	for _, pl := range s.places {
		s.beatAt(pl, s.now())
	}
}

// duePlaces returns the places that must be heard of. Session.mu must be held.
func (s *Session) duePlaces(now time.Duration) (due []*place) {
	if now < s.placesDue {
		return nil
	}
	// With the first of them go all who are due soon, so that those who came one by one
	// are heard of together from then on.
	soon := now + s.beatEvery()/2
	s.placesDue = never
	for _, pl := range s.places {
		if pl.due <= soon {
			pl.due = never
			due = append(due, pl)
		}
		s.placesDue = min(s.placesDue, pl.due)
	}
	return due
}

// beat lets Redis hear of places, many with one script call.
func (s *Session) beat(due []*place) {
	var batches [][]*place
	open := map[string]int{} // by lock
	for _, pl := range due {
		i, ok := open[pl.q.Key()]
		if !ok || len(batches[i]) >= beatBatch {
			i = len(batches)
			open[pl.q.Key()] = i
			batches = append(batches, nil)
		}
		batches[i] = append(batches[i], pl)
	}
	cmds := make([]Command, len(batches))
	for i, b := range batches {
		names := make([]string, len(b))
		for j, pl := range b {
			names[j] = pl.name
		}
		cmds[i] = b[0].q.Beat(names)
	}
	asked := s.now()
	ctx, cancel := context.WithTimeout(s.ctx, max(s.beatEvery(), 10*time.Millisecond))
	defer cancel()
	for i, r := range s.runMulti(ctx, cmds) {
		reply, err := r.AsIntSlice()
		if err == nil && len(reply) != len(batches[i])+1 {
			err = errShape
		}
		s.beaten(batches[i], reply, err, asked)
	}
}

// beaten takes in the answer about a batch that was sent at the given time.
func (s *Session) beaten(b []*place, reply []int64, err error, asked time.Duration) {
	s.mu.Lock()
	for i, pl := range b {
		switch {
		case s.places[pl.a.op.ID] != pl:
		case err != nil && classify(err) == refused:
			pl.look = true // the attempt will say why
			pl.a.w.signal()
		case err != nil:
			s.beatAt(pl, s.now()+jitter(max(s.beatEvery()/4, 10*time.Millisecond)))
		default:
			ms := reply[i]
			if ms == 0 {
				ms = -1 // he asks now, so the next beat is not urgent
				pl.look = true
				pl.a.w.signal()
			}
			s.heardOf(pl, asked, ms, reply[len(b)])
		}
	}
	s.unlock()
	if err != nil {
		s.log.Debug("relock: a heartbeat of waiters failed, will be tried again", "waiters", len(b), "error", err)
	}
}
