package explore

import (
	"strconv"
	"time"

	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/waiting"
)

// A liner is what tells the model of a kind of lock whose sessions stand in a line: what the product's primitives do.
type liner interface {
	Acquire(op *kind.Op) script.Command
	Release(op *kind.Op) script.Command
	Renew(op *kind.Op) script.Command
}

// What a locker's commands are.
const (
	acquires int8 = iota + 1
	releases
	dismisses // as releases; nobody waits for the answer
	renews
	looks
	nests
	unnests
)

// The phases of a locker.
const (
	idle int8 = iota
	asking
	held
	releasing
	keeping
)

// The steps of a locker's own, those first that the calm run takes first.
const (
	ask int8 = iota
	notice
	renew
	unlock
	begin
	cancel
	look
	giveBack
	nestLock
	nestUnlock
)

// A role is what does not change of a client.
type role struct {
	who    int8
	id     string
	prim   liner
	want   waiting.Want
	n      int  // permits; 0: it is a lock
	mode   byte // of trust
	tokens bool
	habits
	flaws flaw // of mutants
}

// habits are how a client uses the lock.
type habits struct {
	anew         bool // another caller waits behind: the release enters the next claim in the line
	renews       bool
	nests        bool // it locks once more inside
	keeps        bool // it keeps what it has left, unless another one wants it
	listensFirst bool // it listens to the lock's channel when it has been the first for a moment
	tries        bool // it does not wait
	fair         bool // it waits for a fair lock
	reads        bool // it is a reader
}

// A locker is a session with one caller at a time, who waits in the line of the lock, holds it and releases it, a few
// times. It is the model of a mutex's session, of a writer and of one that wants permits.
type locker struct {
	*role
	phase, rounds int8
	num           int8 // of the claim
	waiter
	leased
	clock
	listening bool
	told      parcel // a message that waits for the answer to the attempt
	kept
	nest int8 // what becomes of the nested hold
}

// A waiter is what a locker knows of a claim that asks: of its attempts, and of its entry in the line.
type waiter struct {
	flying     bool // an attempt for it is on its way
	mayHaveRun bool
	stands     bool  // it stands in the line, as far as is known
	first      int64 // since when it is the first, as far as is known; 0: it is not
	soon       bool  // it asks at once
	lookAt     int64
	askAt      int64 // fair: when it was told to ask
	looking    bool  // fair: a look is on its way
	position   int64 // fair: in the line
}

// leased is until when a locker trusts the lease of the claim that it has, and when it renews that.
type leased struct {
	until, renewAt int64
	renewing       bool
}

// A clock is what a locker knows of Redis's.
type clock struct {
	read   bool  // it was read
	offset int64 // by which the session's was less then
	readAt int64 // when, by the order of what Redis did
}

func (c *locker) copy() client {
	d := *c
	return &d
}

// trustIn is for how long a lease may be trusted.
func trustIn(lease int64) int64 { return lease - min((lease+19)/20, 1000) }

func (c *locker) owner(num int8) string {
	if c.keeps {
		return c.id + ":0" + strconv.Itoa(int(num))
	}
	return c.id + ":" + strconv.Itoa(int(num))
}

func (c *locker) own(now int64, buf []ownStep) []ownStep {
	switch c.phase {
	case idle:
		if c.rounds > 0 {
			buf = append(buf, ownStep{code: begin})
		}
	case asking:
		switch {
		case c.flying:
		case c.soon || !c.fair && now >= c.lookAt || c.fair && now >= c.askAt:
			buf = append(buf, ownStep{code: ask, prompt: true, look: !c.soon && !c.fair})
		case c.fair && c.stands && !c.looking && now >= c.lookAt:
			buf = append(buf, ownStep{code: look, prompt: true, look: true})
		}
		if !c.tries {
			buf = append(buf, ownStep{code: cancel, cost: 1})
		}
	case held:
		if now >= c.until {
			return append(buf, ownStep{code: notice, prompt: true})
		}
		if c.renews && !c.renewing && now >= c.renewAt {
			buf = append(buf, ownStep{code: renew, prompt: true})
		}
		var free bool
		if buf, free = c.ownNested(buf); free {
			buf = append(buf, ownStep{code: unlock})
		}
	case keeping:
		return c.ownKept(now, buf)
	}
	return buf
}

func (c *locker) describe(code int8) string {
	return [...]string{ask: "asks again", notice: "finds its lease over", renew: "sends a renewal", unlock: "unlocks",
		begin: "begins to lock", cancel: "is cancelled", look: "looks",
		giveBack: "gives back what it has kept", nestLock: "locks once more", nestUnlock: "leaves its nested hold"}[code]
}

func (c *locker) sends(m *command) string {
	what := [...]string{acquires: "acquire", releases: "release", dismisses: "release in the background", renews: "renewal", looks: "look",
		nests: "nested acquire", unnests: "release of the nested hold"}[m.what]
	return what + " of " + c.owner(m.num)
}

func (c *locker) act(w *world, code int8) {
	now := w.now()
	switch code {
	case begin:
		c.rounds--
		if c.phase == keeping {
			c.reuse(w)
			return
		}
		c.newClaim(c.num + 1)
		c.attempt(w)
	case ask:
		if c.listensFirst && !c.flaws.has(neverListens) && c.first > 0 && now >= c.first+waiting.FirstPatience.Milliseconds() {
			c.listening = true
		}
		c.attempt(w)
	case cancel:
		c.giveUp(w)
		c.rest()
	case unlock:
		c.unlock(w)
	case giveBack:
		c.giveBack(w)
	case nestLock:
		c.nestLock(w)
	case nestUnlock:
		c.nestUnlock(w)
	case notice:
		if w.faults == w.set.faults && c.renews {
			w.fail(c.owner(c.num) + " is lost, and nothing has failed")
		}
		c.release(w, releases, c.num, "", 0)
		c.phase = releasing
	case look:
		c.looking = true
		w.send(c.who, &command{Command: c.prim.(kind.FairLiner).Look([]string{c.head() + c.owner(c.num)}), what: looks, num: c.num})
	case renew:
		c.renewing = true
		if !c.flaws.has(forgetsRenewal) {
			w.send(c.who, &command{Command: c.renewal(strconv.FormatInt(w.set.lease, 10)), what: renews, num: c.num})
		}
	}
}

// newClaim begins to wait with a claim that Redis has not heard of.
func (c *locker) newClaim(num int8) {
	c.phase, c.num = asking, num
	c.waiter = waiter{flying: c.flying, lookAt: never, askAt: never}
	c.told, c.kept = parcel{}, kept{}
}

// rest ends a claim: the next one comes when it likes.
func (c *locker) rest() {
	c.phase, c.stands, c.first, c.told, c.listening, c.flying, c.soon = idle, false, 0, parcel{}, false, false, false
}

// head is what stands in front of the owner in its entry.
func (c *locker) head() string { return c.want.Head() }

// attempt sends an attempt.
func (c *locker) attempt(w *world) {
	op := &kind.Op{Owner: c.owner(c.num), N: c.n, Lease: ms(w.set.lease), Private: true}
	if c.tokens {
		op.Tokens = 1
	}
	switch {
	case c.fair:
		op.Run = &waiting.RunAttempt{Entry: c.head() + c.owner(c.num), Last: int64(c.num), Waiting: 1, Again: c.stands || c.mayHaveRun}
		if !c.stands {
			op.Run.Before = c.position
		}
	case !c.tries:
		op.Wait = true
		op.Line = kind.Line{Head: c.head(), Again: c.stands || c.mayHaveRun, Listens: c.listening}
	}
	c.soon, c.flying, c.askAt = false, true, never
	w.send(c.who, &command{Command: c.prim.Acquire(op), what: acquires, num: c.num})
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// release sends a release of all that a claim has; head, if it may stand in the line.
func (c *locker) release(w *world, what, num int8, head string, anew int8) {
	op := &kind.Op{Owner: c.owner(num), N: c.n, All: true, Private: true, ByIDs: c.nests, Line: kind.Line{Named: true, Head: head, Listens: c.listening}}
	if anew != 0 {
		op.Line.Enter = c.head() + c.owner(anew)
	}
	w.send(c.who, &command{Command: c.prim.Release(op), what: what, num: num, anew: anew})
}

// giveUp ends a claim that asks: what may stand of it is released.
func (c *locker) giveUp(w *world) {
	if !c.flying && !c.mayHaveRun && !c.stands {
		return
	}
	head := c.head()
	if c.flaws.has(leavesEntry) {
		head = ""
	}
	c.release(w, dismisses, c.num, head, 0)
}

// unlock sends the release of the hold.
func (c *locker) unlock(w *world) {
	if c.keep(w) {
		return
	}
	anew := int8(0)
	if c.anew && c.rounds > 0 {
		anew = c.num + 1
	}
	c.phase = releasing
	c.release(w, releases, c.num, "", anew)
}
