package engine

import (
	"time"

	"relock/internal/kind"
	"relock/internal/queue"
)

// enterLobby notes that the caller waits where others do, or did. If the lock was told of a limit
// below what it wants, the front asks whether that still holds.
func (a *acquisition) enterLobby() {
	l := a.lock
	m, allowed := &l.waiting().limit, false
	if a.arrived, allowed = m.Arrive(a.n); !allowed && a.kind.Permits && l.queue.Front() != a {
		m.Doubt()
		l.nudge()
	}
	if l.share != nil && a.kind.Exclusive { // a writer waits
		l.share.passUntil = min(l.share.passUntil, a.start+joinBeforeWriter)
	}
}

// heardLimit ends the waits of the callers that want more than the limit in the answer to the front.
// They would hear of it only at their own attempts, which may be long to come.
func (a *acquisition) heardLimit(g grant) {
	l := a.lock
	if !g.Sized || l.queue.Front() != a {
		return
	}
	m := &l.waiting().limit
	if !m.Heard(g.Limit) {
		return
	}
	for w := a.node.Next(); w != nil; w = w.node.Next() {
		if m.Excludes(w.arrived, w.n) {
			w.hopeless = grant{Answer: kind.Answer{Value: g.Limit}}.never(w.prim)
			wakeUp(w.wake)
		}
	}
	if m.Doubted() {
		l.nudge()
	}
}

// fail takes back what a failed acquisition has done. The lock's mutex must be held; it is
// released.
func (a *acquisition) fail(err error) error {
	a.leave(nil)
	gone := a.giveUp()
	if a.member.Run != nil {
		gone = a.leaveRun()
	}
	a.lock.unlock()
	if gone != nil {
		briefly(gone)
	}
	return err
}

// admit makes a section of a grant.
func (a *acquisition) admit(g grant) *section {
	l, c, s, k := a.lock, a.claim, a.lock.s, a.kind
	now := s.now()
	c.state = held
	lease := a.lease
	if g.unconfirmed > 0 {
		lease = g.unconfirmed
	}
	c.confirmed(g.sent, lease, g.doubts)
	if !k.Permits && (l.claims != c || c.next != nil) {
		l.belie(c)
	}
	if k.Exclusive {
		l.holder = c
	}
	if k.Exclusive || k.Permits {
		c.passUntil = now + queue.Slice
		if l.lobby != nil {
			l.beginSlice(c, now)
		}
	}
	x := c.open(a, g.sent)
	if k.Fenced || g.Token > 0 {
		c.reserve(g.Token)
		x.token.Store(c.draw())
	}
	if g.unconfirmed > 0 || g.doubts != s.redis.Conn.Doubts.Load() {
		c.renewAt = g.sent // Redis is asked at once
	}
	c.renewAfter(g.sent)
	if m := c.more; m != nil {
		m.registered = false
		if c.num == 0 {
			m.holds = map[*Hold]string{&x.first: a.op.ID}
		}
		c.commandDone()
	}
	if k.Shares {
		l.shareFrom(c, g.sent)
	}
	return x
}

// leave takes the caller out of the queue. won is the grant, nil if there is none.
func (a *acquisition) leave(won *grant) {
	if !a.queued {
		return
	}
	l := a.lock
	wasFront := l.queue.Front() == a
	l.queue.Remove(&a.node)
	a.queued = false
	next := l.queue.Front()
	if next == nil {
		if l.lobby != nil {
			l.desert()
			l.unpark()
		}
		return
	}
	defer l.unpark()
	if wasFront {
		wakeUp(next.wake) // it has to look after the messages and the clock from now on
	}
	k := a.kind
	switch {
	case k.Exclusive && (won != nil || k == next.kind || l.holder != nil):
		// It keeps the next one out, or what kept it out does the same to the next one.
	case won != nil && wasFront && won.Sized && won.Free < int64(next.n): // what is left is not enough for it
		l.waiting().lookAt = l.s.lookAfter(won.Value)
	case won != nil || wasFront:
		l.nudge() // what let this one in, or was not enough for it, may let in the next one
	}
}

// dequeue takes a caller out of the queue that was let in by another goroutine.
func (l *lock) dequeue(a *acquisition) {
	l.queue.Remove(&a.node)
	a.queued = false
	if l.lobby != nil && l.queue.Front() == nil {
		l.desert()
	}
}

// desert ends the subscription: the last waiter has gone.
func (l *lock) desert() {
	if unused := l.lobby.listener; unused != nil {
		l.lobby.listener = nil
		l.later(unused.Close)
	}
}

// giveUp ends the claim of a failed acquisition: what may have been granted is released in the
// background. The channel is closed when that is done; it is nil if there is no need to wait for it.
func (a *acquisition) giveUp() <-chan struct{} {
	c := a.claim
	if c == nil || c.state != asking {
		return nil
	}
	k := a.kind
	registered := c.more != nil && c.more.registered
	late := a.tries.mayCome && k.Unleased // it would take for ever; the release leaves word
	if !a.tries.unknown && !registered && !late {
		c.retire(over)
		c.forget()
		return nil
	}
	gone := make(chan struct{})
	c.end(a.lock.s.now()+a.lease, gone)
	if k.Registers {
		return gone
	}
	return nil
}

// briefly waits for what should take one round trip, and no longer when Redis does not answer:
// a waiter that leaves should find itself gone from the queue in Redis.
func briefly(done <-chan struct{}) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
