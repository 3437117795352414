package explore

import (
	"strconv"
	"strings"

	"relock/internal/idgen"
	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/test/explore/memredis"
	"relock/internal/waiting"
)

// A counter has no owners and no leases. Redis remembers the last request of each slot of a session, by its number, and so
// none counts twice. Those who wait are called, and ask: they are given nothing by another's release.

// Counter is what package semaphore tells of a counter without an end; its tests compare the two.
type Counter struct{ Names keyname.Names }

var (
	counterTake   = load("semaphore/lua/take.lua")
	counterUntake = load("semaphore/lua/untake.lua")
	counterAdd    = load("semaphore/lua/add.lua")
)

// remembered is for how many ms requests are: longer than any run.
const remembered = 10 * farOff

func (c *Counter) channel() string { return c.Names.Prefixed("redisson_sc") }

func (c *Counter) line() string { return c.Names.Prefixed("relock_line1") }

// requests is the key of what is remembered of a session.
func (c *Counter) requests(session string) string {
	return c.Names.Prefixed("relock_requests") + ":" + session
}

// request returns the slot and the number by which the taking of a claim is known. Its giving back comes after it in the
// same slot, by the next number.
func request(owner string) (slot string, number int) {
	_, num, _ := claimOf(owner)
	return strconv.Itoa(int(num)), 2*int(num) - 1
}

// once begins the arguments of a command that counts once.
func once(owner string, behind int) []string {
	slot, number := request(owner)
	return []string{slot, strconv.Itoa(number + behind), strconv.Itoa(remembered), "0"}
}

// Acquire is take.lua.
func (c *Counter) Acquire(op *kind.Op) script.Command {
	l := &op.Line
	args := append(once(op.Owner, 0), strconv.Itoa(op.N), l.Head, script.Flag(l.Again), script.Flag(l.Listens), c.Names.Counts, inbox.Prefix,
		strconv.Itoa(l.Waiting), op.Owner, "", "", c.channel(), c.Names.Publish)
	return script.Command{Script: counterTake, Keys: append(c.keys(op.Owner), c.line()), Args: args}
}

func (c *Counter) keys(owner string) []string {
	return []string{c.Names.Key(), c.Names.Suffixed("timeout"), c.requests(owner[:1])}
}

// Release is add.lua for all that a claim has; untake.lua for one that asks, of which something may have been taken; and for
// an entry alone the release.lua that semaphores have.
func (c *Counter) Release(op *kind.Op) script.Command {
	switch {
	case !op.All:
		return (&Permits{Names: c.Names}).Release(&kind.Op{Owner: op.Owner, Line: op.Line})
	case op.Line.Head == "":
		args := append(once(op.Owner, 1), strconv.Itoa(op.N), c.channel(), c.Names.Publish, c.Names.Counts, inbox.Prefix)
		return script.Command{Script: counterAdd, Keys: append(c.keys(op.Owner), c.line()), Args: args}
	}
	args := append(once(op.Owner, 0), c.channel(), c.Names.Publish, c.Names.Counts, inbox.Prefix, op.Line.Head, op.Owner)
	return script.Command{Script: counterUntake, Keys: []string{c.Names.Key(), c.requests(op.Owner[:1]), c.line()}, Args: args}
}

// Renew is no command: there is nothing to renew.
func (*Counter) Renew(*kind.Op) script.Command { return script.Command{} }

// taken is how much the sessions have taken and not given back, as Redis remembers it, by the claims that have.
func (c *Counter) taken(w *world) map[string]int {
	all := make(map[string]int)
	for _, session := range strings.Split(ids, "") {
		for _, slot := range w.redis.Fields(c.requests(session)) {
			last, _ := w.redis.Field(c.requests(session), slot)
			number, outcome := idgen.SplitRequest(last)
			n, err := strconv.Atoi(outcome)
			if takes := (number[len(number)-1]-'0')%2 == 1; takes && err == nil {
				all[session+":"+slot] = n
			}
		}
	}
	return all
}

// A taker is a session that takes from a counter, and later adds as much.
type taker struct{ locker }

func (c *taker) copy() client {
	d := *c
	return &d
}

func (c *taker) answered(w *world, m *command, r memredis.Reply, us int64) {
	if m.what == acquires && m.num == c.num && c.phase == asking && r.Kind == memredis.Array && r.Elems[0].Int == 1 {
		c.enter(w, never, never, 0)
		return
	}
	c.locker.answered(w, m, r, us)
}

// mayGo reports whether nothing is lost with the session for ever: of what one has taken that dies nobody knows.
func (c *taker) mayGo() bool {
	return c.phase == idle || c.phase == asking && !c.flying && !c.mayHaveRun
}

// counters is a setup in which each session takes so many from a counter and adds as many, once.
func counters(name string, faults int8, limit int, rounds []int8, sizes ...int) *Setup {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	set := newSetup(name, faults, rounds)
	p := &Counter{Names: space.Names("sem")}
	set.key, set.channel, set.limit = "sem", p.channel(), limit
	set.mayFail = failing(loseReply, giveUp, loseMessage, stop, die, vanish)
	set.prepare = func(r *memredis.Redis) { r.Do("SET", set.key, strconv.Itoa(limit)) }
	set.clients = func(set *Setup) (all []client) {
		for i, n := range sizes {
			r := &role{who: int8(i), id: ids[i : i+1], prim: p, mode: 'p', n: n, flaws: set.flaws()}
			r.want = waiting.Want{Session: r.id, Permits: n, Asks: true, Lease: ms(set.grantLease), Life: ms(set.life)}
			all = append(all, &taker{locker{role: r, rounds: rounds[i]}})
		}
		return all
	}
	set.ofCounter(p)
	// One for which less would do may have been called when enough for the first comes free, and comes first.
	set.calmMost[0] = calmCost{int16(len(rounds)) + 1, 1, 5}
	return set
}

// ofCounter is what is true of Redis's side of a counter.
func (set *Setup) ofCounter(p *Counter) {
	set.owners = func(w *world) (owners []string) {
		for owner := range p.taken(w) {
			owners = append(owners, owner)
		}
		return owners
	}
	set.stands = func(w *world, who int, t trust) bool {
		return p.taken(w)[ids[who:who+1]+":"+strconv.Itoa(int(t.num))] == t.n
	}
	free := func(w *world) int {
		n, _ := strconv.Atoi(w.redis.Do("GET", set.key).Text)
		return n
	}
	set.endless = func(key string) bool { return key == set.key }
	set.remains = func(k *memredis.Key) bool { return strings.HasPrefix(k.Name, p.requests("")) }
	set.free = func(w *world) bool { return free(w) > 0 }
	set.counts = func(w *world) string {
		n := free(w)
		for _, taken := range p.taken(w) {
			n += taken
		}
		if free(w) < 0 || n != set.limit {
			return strconv.Itoa(free(w)) + " are left, and with what was taken " + strconv.Itoa(n) + " of " + strconv.Itoa(set.limit)
		}
		return ""
	}
	set.sameTwice = func(c *command, a, b memredis.Reply, told bool) bool {
		x, err := a.Numbers()
		y, err2 := b.Numbers()
		switch {
		case err != nil || err2 != nil:
			return a.String() == b.String() // it comes late, both times
		case c.what == acquires && x[0] == 0:
			return y[0] == 0 && (told || x[1] == y[1])
		case c.what == acquires:
			return y[0] == 1
		}
		return true
	}
	set.judge = func() judge { return inOrder{} }
}
