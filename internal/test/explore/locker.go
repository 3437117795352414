package explore

import (
	"strconv"
	"time"

	"relock/internal/inbox"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/test/explore/memredis"
	"relock/internal/waiting"
)

// A liner is what tells the model of a kind of lock whose sessions stand in a line: what the product's primitives do.
type liner interface {
	Acquire(op *kind.Op) script.Command
	Release(op *kind.Op) script.Command
	RenewScript() *script.Script
	RenewArgs(op *kind.Op) (keys, args []string)
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
	anew   bool // another caller waits behind: the release enters the next claim in the line
	renews bool
	nests  bool // it locks once more inside
	keeps  bool // it keeps what it has left, unless another one wants it
	first  bool // it listens to the lock's channel when it has been the first for a moment
	tries  bool // it does not wait
	fair   bool // it waits for a fair lock
	reads  bool // it is a reader: it stands in no line, and listens
	flaws  flaw // of mutants
}

// A locker is a session with one caller at a time, who waits in the line of the lock, holds it and releases it, a few
// times. It is the model of a mutex's session, of a writer and of one that wants permits.
type locker struct {
	*role
	phase, rounds  int8
	num            int8 // of the claim
	flying         bool // an attempt for it is on its way
	mayHaveRun     bool
	stands         bool  // it stands in the line, as far as is known
	first          int64 // since when it is the first, as far as is known; 0: it is not
	soon           bool  // it asks at once
	lookAt         int64
	askAt          int64 // fair: when it was told to ask
	looking        bool  // fair: a look is on its way
	position       int64 // fair: in the line
	read           bool  // Redis's clock was read
	offset         int64 // by which the session's was less then
	until, renewAt int64
	renewing       bool
	listening      bool
	readAt         int64  // when, by the order of what Redis did
	told           parcel // a message that waits for the answer to the attempt
	kept
	nest int8 // what becomes of the nested hold
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
		if c.role.first && !c.flaws.has(neverListens) && c.first > 0 && now >= c.first+waiting.FirstPatience.Milliseconds() {
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
	c.phase, c.num, c.mayHaveRun, c.stands, c.first, c.soon, c.lookAt = asking, num, false, false, 0, false, never
	c.askAt, c.looking, c.position = never, false, 0
	c.told, c.kept = parcel{}, kept{}
}

// rest ends a claim: the next one comes when it likes.
func (c *locker) rest() {
	c.phase, c.stands, c.first, c.told, c.listening, c.flying, c.soon = idle, false, 0, parcel{}, false, false, false
}

// head is what stands in front of the owner in its entry.
func (c *locker) head() string {
	if c.reads {
		return ""
	}
	return c.want.Head()
}

// attempt sends an attempt.
func (c *locker) attempt(w *world) {
	op := &kind.Op{Owner: c.owner(c.num), N: c.n, Lease: ms(w.set.lease), Private: true}
	if c.tokens {
		op.Tokens = 1
	}
	switch {
	case c.fair:
		op.Position = &waiting.Position{Entry: c.head() + c.owner(c.num), Last: int64(c.num), Waiting: 1, Again: c.stands || c.mayHaveRun}
		if !c.stands {
			op.Position.Before = c.position
		}
	case !c.tries && !c.reads:
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

func (c *locker) answered(w *world, m *command, r memredis.Reply, us int64) {
	n, err := r.Numbers()
	if err != nil {
		w.fail(err.Error())
		return
	}
	switch m.what {
	case acquires:
		if m.num == c.num && c.phase == asking {
			c.attempted(w, m, n, us)
		}
	case renews:
		if m.num == c.num && (c.phase == held || c.phase == keeping) {
			c.renewed(w, m, n)
		}
	case looks:
		if m.num == c.num && c.phase == asking {
			c.looked(w, m, n, us)
		}
	case nests, unnests:
		c.nestAnswered(w, m, n)
	case releases:
		c.released(w, m, n, us)
	}
}

// looked takes in the answer to a look: 0 is that it is to ask.
func (c *locker) looked(w *world, m *command, n []int64, us int64) {
	c.looking, c.read, c.offset, c.readAt = false, true, m.sent-n[1], us
	c.soon = c.soon || n[0] == 0
	c.lookAfter(w, m.sent, max(n[0], -1))
}

func (c *locker) renewed(w *world, m *command, n []int64) {
	c.renewing = false
	if n[0] == 0 && !c.flaws.has(ignoresLoss) {
		c.rest()
		return
	}
	from := m.sent
	if c.flaws.has(trustsFromReply) {
		from = w.now()
	}
	c.until = max(c.until, from+trustIn(w.set.lease))
	c.renewAt = m.sent + w.set.lease/3
}

// attempted takes in the answer to an attempt of the claim that asks.
func (c *locker) attempted(w *world, m *command, n []int64, us int64) {
	now := w.now()
	c.flying = false
	a := c.decode(n)
	c.mayHaveRun = a.Status == kind.Granted
	if a.Status == kind.Granted {
		until := m.sent + trustIn(w.set.lease)
		if c.flaws.has(trustsFromReply) {
			until = now + trustIn(w.set.lease)
		}
		if c.flaws.has(noMargin) {
			until = m.sent + w.set.lease + 300
		}
		if now >= until { // later than its own lease
			c.soon = true
			return
		}
		c.enter(w, until, m.sent+w.set.lease/3, a.Token)
		return
	}
	if c.tries && a.Position == 0 {
		c.rest()
		return
	}
	if c.reads && !c.listening { // it may have missed what was published before
		c.listening, c.soon = true, true
	}
	if a.Position > 0 {
		c.standsNow(now, m.sent, a.Value, a.Token, us)
	}
	if c.fair {
		c.position = a.Position
		c.lookAfter(w, m.sent, a.Value)
	} else {
		c.lookAfter(w, now, a.Value)
	}
	if c.role.first && !c.listening && c.first > 0 {
		c.lookAt = min(c.lookAt, c.first+waiting.FirstPatience.Milliseconds())
	}
	c.hearTold(w)
}

// hearTold takes in a message that has waited for a refusal.
func (c *locker) hearTold(w *world) {
	t := c.told
	c.told = parcel{}
	if t.text != "" && !c.flaws.has(forgetsTold) {
		c.hear(w, t)
	}
}

// decode reads the reply of an acquire script.
func (c *locker) decode(n []int64) (a kind.Answer) {
	switch {
	case len(n) == 1 && c.n > 0: // what is free
		return kind.Answer{Status: kind.Granted, Value: -1}
	case len(n) == 1:
		return kind.Answer{Status: n[0], Value: 1}
	}
	return kind.Answer{Status: n[0], Value: n[1], Token: n[2], Position: n[3]}
}

// standsNow notes that the claim stands in the line, and what Redis's clock said.
func (c *locker) standsNow(now, sent, left, clock, us int64) {
	c.stands, c.read, c.offset, c.readAt = true, true, sent-clock, us
	switch {
	case left < 0:
		c.first = 0
	case c.first == 0:
		c.first = now
	}
}

// lookAfter has it ask again when Redis said that it is worth while, and at each poll floor.
func (c *locker) lookAfter(w *world, now, left int64) {
	sleep := w.set.pollFloor
	if left >= 0 && left < sleep {
		sleep = left + 1
	}
	c.lookAt = now + sleep
	if c.flaws.has(neverLooks) {
		c.lookAt = never
	}
}

// enter begins a section.
func (c *locker) enter(w *world, until, renewAt, token int64) {
	c.wanted = c.wanted || c.stands // those behind it in the line have asked nobody
	c.rest()
	c.nest = notNested
	c.phase, c.until, c.renewAt, c.renewing = held, until, renewAt, false
	if c.tokens {
		if token <= w.tokens && w.robbed[c.who] != c.num {
			w.fail("the token " + strconv.FormatInt(token, 10) + " of " + c.owner(c.num) + " is no greater than one before")
		}
		w.tokens = max(w.tokens, token)
	}
}

func (c *locker) released(w *world, m *command, n []int64, us int64) {
	if m.num != c.num || c.phase != releasing {
		return
	}
	if len(n) == 1 {
		n = []int64{0, 1, n[0]}
	}
	told := c.told
	c.rest()
	if m.anew == 0 {
		return
	}
	c.rounds--
	c.newClaim(m.anew)
	c.told = told
	if len(n) == 5 && n[3] > 0 && !m.resent {
		c.standsNow(w.now(), m.sent, -1, n[4], us)
		c.lookAfter(w, w.now(), -1)
		c.hearTold(w)
		return
	}
	c.mayHaveRun, c.soon = m.resent || n[1] == 0, true
}

func (c *locker) unknown(w *world, m *command) {
	switch {
	case m.what == acquires:
		if m.num == c.num && c.phase == asking {
			c.flying, c.mayHaveRun, c.soon = false, true, true
		}
	case m.what == renews:
		if m.num == c.num && (c.phase == held || c.phase == keeping) {
			c.renewing, c.renewAt = false, w.now()
		}
	case m.what == nests || m.what == unnests:
		c.nestAgain(w, m)
	default:
		if m.what == looks { // the next one does as well
			if m.num == c.num {
				c.looking, c.lookAt = false, w.now()
			}
			return
		}
		again := *m
		again.resent = true
		w.send(c.who, &again)
	}
}

func (c *locker) hear(w *world, p parcel) {
	if p.fromLock {
		c.soon = c.soon || c.phase == asking
		return
	}
	if lost, ok := inbox.ParseRevocation(p.text); ok {
		c.revoked(w, lost.Owner)
		return
	}
	if wanted, ok := inbox.ParseWanted(p.text); ok {
		c.askedBack(w, wanted.Owner)
		return
	}
	m, ok := waiting.Parse(p.text, c.id)
	if !ok {
		w.fail("the session does not understand " + p.text)
		return
	}
	_, num, _ := claimOf(m.Owner)
	entering := c.phase == releasing && num == c.num+1 && c.anew && c.rounds > 0
	switch {
	case entering:
		c.told = p
	case num != c.num || c.phase == idle:
		c.dismiss(w, &m, num)
	case c.phase != asking:
	case c.flying:
		c.told = p
	case m.Granted:
		c.given(w, &m, p.us)
	case c.fair:
		c.askAt = min(c.askAt, w.now()+m.After.Milliseconds())
	default:
		c.soon = c.soon || m.After == 0
		c.lookAt = min(c.lookAt, w.now()+m.After.Milliseconds())
	}
}

// given takes in that another's release has given the lock to the claim.
func (c *locker) given(w *world, m *waiting.Message, us int64) {
	now, lease := w.now(), m.Lease.Milliseconds()
	at := c.offset + m.At - 1
	if c.flaws.has(trustsFromReply) {
		at = now
	}
	newer := us < c.readAt && !c.flaws.has(trustsTold) // a refusal: what was given is gone. (The engine knows ms.)
	if !c.read || newer || at > now || now >= at+trustIn(lease)/2 {
		c.soon = true
		return
	}
	trusted := trustIn(min(lease, w.set.lease))
	if c.flaws.has(trustsFullLease) {
		trusted = trustIn(w.set.lease)
	}
	c.enter(w, at+trusted, now+waiting.ConfirmAfter.Milliseconds(), m.Token)
}

// dismiss gives back what an unknown claim was given, or takes its entry off the line.
func (c *locker) dismiss(w *world, m *waiting.Message, num int8) {
	op := &kind.Op{Owner: m.Owner, N: c.n, All: m.Granted, Private: m.Granted, Line: kind.Line{Named: true, Head: m.Head}}
	w.send(c.who, &command{Command: c.prim.Release(op), what: dismisses, num: num})
}

// revoked takes in that an owner was forced out.
func (c *locker) revoked(w *world, owner string) {
	if owner != c.owner(c.num) {
		return
	}
	w.robbed[c.who] = 0
	switch c.phase {
	case asking:
		c.giveUp(w)
		position := c.position
		c.newClaim(c.num + 1)
		c.flying, c.soon, c.position = false, true, position
	case held, keeping: // an attempt that came behind may have taken it anew
		c.release(w, dismisses, c.num, "", 0)
		c.rest()
	}
}

func (c *locker) listens() bool { return c.listening }

func (c *locker) next(now int64) int64 {
	switch c.phase {
	case asking:
		if !c.flying {
			return min(c.lookAt, c.askAt)
		}
	case keeping:
		return c.nextKept(now)
	case held:
		if c.renews && !c.renewing && c.renewAt > now { // else it does that as soon as it runs
			return min(c.until, c.renewAt)
		}
		return c.until
	}
	return never
}

func (c *locker) over() bool { return (c.phase == idle || c.phase == keeping) && c.rounds == 0 }

func (c *locker) claims() bool { return c.phase != idle }

func (c *locker) trusts(now int64) trust {
	inside := c.phase == held || c.phase == releasing && c.flaws.has(unlocksLate)
	if !inside || now >= c.until {
		return trust{}
	}
	return trust{c.mode, c.num, c.n}
}

func (c *locker) lives(num int8) bool {
	return num == c.num && c.phase != idle || num == c.num+1 && c.phase == releasing
}

func (c *locker) standing() int8 {
	if c.phase == asking && c.stands {
		return c.num
	}
	return 0
}

func (c *locker) places(at func(int64)) {
	if c.phase == asking && c.position > 0 {
		at(c.position)
	}
}

func (c *locker) moments(at func(us int64)) {
	if c.phase != held && c.phase != keeping && c.read {
		at(c.readAt)
	}
	if c.told.text != "" {
		at(c.told.us)
	}
}

func (c *locker) write(h *hasher) {
	h.byte(byte(c.phase))
	h.byte(byte(c.rounds))
	h.byte(byte(c.num))
	switch c.phase {
	case asking:
		h.flag(c.flying)
		h.flag(c.mayHaveRun)
		h.flag(c.stands)
		h.flag(c.soon)
		if c.first > 0 {
			h.since(c.first, waiting.FirstPatience.Milliseconds())
		}
		h.until(c.lookAt)
		if c.fair {
			h.until(c.askAt)
			h.flag(c.looking)
			if c.position > 0 {
				h.position(c.position)
			}
		}
		h.flag(c.listening)
		h.flag(c.wanted)
		h.text(c.told.text)
		h.moment(c.told.us)
	case held, keeping:
		h.until(c.until)
		h.until(c.renewAt)
		h.flag(c.renewing)
		h.byte(byte(c.nest))
		c.kept.write(h)
	case releasing:
		h.text(c.told.text)
		h.moment(c.told.us)
	}
	if c.phase != held && c.phase != keeping {
		h.moment(c.readAt)
	}
	h.flag(c.read)
	h.num(c.offset)
}
