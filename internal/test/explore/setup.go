package explore

import (
	"fmt"
	"strings"

	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/mutex"
	"relock/internal/script"
	"relock/internal/test/explore/memredis"
	"relock/internal/waiting"
)

// failures says what may go wrong.
type failures uint32

func (f failures) has(k stepKind) bool { return f&(1<<k) != 0 }

func failing(kinds ...stepKind) (f failures) {
	for _, k := range kinds {
		f |= 1 << k
	}
	return f
}

var allFailures = failing(loseReply, giveUp, loseMessage, stop, die, vanish, remove, force)

// A Setup is where an exploration begins: who there is, and what may go wrong.
type Setup struct {
	Name         string
	key, channel string // of the lock
	limit        int    // of permits
	times
	bounds
	view
	perms   [][]int
	clients func(set *Setup) []client
	others  bool // others than sessions of this library wait as well
	judge   func() judge
	mutant  *Mutant
	commands
}

// commands are what a kind of lock is prepared with and forced by, and how its replies compare.
type commands struct {
	prepare func(r *memredis.Redis) // what stands there before
	force   func(owners []string) script.Command
	// sameTwice compares the replies of two runs; told says that the first has told others something.
	sameTwice func(c *command, first, second memredis.Reply, told bool) bool
}

// times are those of the sessions' options, in ms.
type times struct {
	lease      int64
	pollFloor  int64
	life       int64 // for how long a session in the line counts as alive
	grantLease int64 // of what a release gives to another
}

// bounds are what may go wrong, and how much a run may need all the same.
type bounds struct {
	faults   int8
	mayFail  failures
	calmMost []calmCost // what a calm run may need, by how many faults have happened
}

// A view is how the checks read a kind of lock out of Redis.
type view struct {
	alias   map[string]string       // what stands in Redis for what a person can read
	free    func(w *world) bool     // something could be had
	counts  func(w *world) string   // what is wrong with what Redis counts; nil: nothing is counted
	owners  func(w *world) []string // who holds the lock, by Redis
	stands  func(w *world, who int, t trust) bool
	endless func(key string) bool
	remains func(k *memredis.Key) bool // when all is over
}

// begin is the first state.
func (set *Setup) begin() *world {
	w := &world{set: set, faults: set.faults, clients: set.clients(set)}
	w.wires = make([]wire, len(w.clients))
	w.redis.SetMicros(epoch * 1000)
	if set.prepare != nil {
		set.prepare(&w.redis)
	}
	if set.judge != nil {
		w.judge = set.judge()
	}
	return w
}

// WithFaults is the same setup with so many faults that may happen at most, and not more than there are.
func (set *Setup) WithFaults(n int) *Setup {
	other := *set
	other.faults = min(int8(n), set.faults)
	return &other
}

// flaws are those of the mutant.
func (set *Setup) flaws() flaw {
	if set.mutant == nil {
		return 0
	}
	return set.mutant.flaw
}

// permutations of n clients that do the same.
func permutations(n int) [][]int {
	if n == 1 {
		return [][]int{{0}}
	}
	var all [][]int
	for _, p := range permutations(n - 1) {
		for at := range n {
			q := append(append(append([]int{}, p[:at]...), n-1), p[at:]...)
			all = append(all, q)
		}
	}
	return all
}

// A mutexOf is what differs among the setups of mutexes.
type mutexOf struct {
	fair, fenced, anew, keep, nest, leased, java, watchdog bool
	named                                                  int // how many of the sessions have one owner's name
}

// mutexes is a setup in which each session locks so many times.
func mutexes(name string, faults int8, of mutexOf, rounds ...int8) *Setup {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	p := mutex.New(space.Names("lock"), mutex.Fencing{Fenced: of.fenced})
	if of.fair {
		p = mutex.NewFair(space.Names("lock"), mutex.Fencing{Fenced: of.fenced})
	}
	set := newSetup(name, faults, rounds)
	set.key, set.channel = "lock", p.Channel()
	set.clients = func(set *Setup) (all []client) {
		for i, n := range rounds {
			r := &role{who: int8(i), id: ids[i : i+1], prim: p, mode: 'x', tokens: of.fenced, habits: habits{anew: of.anew, keeps: of.keep, fair: of.fair, renews: !of.leased, nests: of.nest}, flaws: set.flaws()}
			r.want = waiting.Want{Session: r.id, Fair: of.fair, Lease: ms(set.grantLease), Life: ms(set.life)}
			if of.fenced {
				r.want.Tokens = 1
			}
			all = append(all, &locker{role: r, rounds: n})
		}
		return all
	}
	set.ofMutex(p)
	set.judge = func() judge { return inOrder{} }
	if of.nest {
		// A late acquisition may bring back the hold of a lock that was deleted, and not the nested one: the release of
		// that ends both, and the session hears of it by the answer.
		set.mayFail &^= failing(remove, force)
	}
	switch {
	case of.watchdog:
		set.withJava(javaKept{javaMutex{p}}, 'x', 0, 1)
	case of.java:
		set.withJava(javaMutex{p}, 'x', 0, 1)
	}
	if of.named > 0 {
		set.withNames(p, of.named)
	}
	return set
}

// newSetup has what all setups have in common: times that fit together, so that states come again.
func newSetup(name string, faults int8, rounds []int8) *Setup {
	set := &Setup{Name: name, times: times{lease: 3000, pollFloor: 1000, grantLease: 1000}, bounds: bounds{faults: faults, mayFail: allFailures,
		calmMost: []calmCost{{int16(len(rounds)), 0, 0}, {10, 20, 4000}, {14, 40, 7000}}}}
	set.life = waiting.Life(ms(set.pollFloor)).Milliseconds()
	set.perms = [][]int{identity(len(rounds))}
	if same(rounds) {
		set.perms = permutations(len(rounds))
	}
	return set
}

// ofMutex is what all setups with a mutex's hash have in common.
func (set *Setup) ofMutex(p *mutex.Primitive) {
	set.owners = func(w *world) []string { return w.redis.Fields("lock") }
	set.stands = func(w *world, who int, t trust) bool {
		_, ok := w.redis.Field("lock", w.clients[who].owner(t.num))
		return ok
	}
	set.free = func(w *world) bool { return !w.redis.Exists(set.key) }
	set.endless = func(key string) bool { return key == p.Token() }
	set.remains = func(*memredis.Key) bool { return false }
	set.force = func(owners []string) script.Command {
		return p.ForceUnlock(&kind.Force{Owners: owners, ID: "1", Remembered: ms(5000)})
	}
	set.sameTwice = func(c *command, a, b memredis.Reply, told bool) bool {
		x, err := a.Numbers()
		y, err2 := b.Numbers()
		switch {
		case err != nil || err2 != nil:
			return false
		case c.what == acquires && x[0] == 1: // but for changed
			return y[0] == 1 && (len(x) == 1 || len(y) == 1 || x[1] == y[1] && x[2] == y[2])
		case c.what == acquires && told: // it has let another in, and may be the first now
			return y[0] == x[0]
		case c.what == acquires: // but for the position and the time
			return y[0] == x[0] && (y[1] == x[1] || x[1] == -1) // -1: it need not be told that it is the first
		case c.what == looks && told:
			return x[0] == 0 == (y[0] == 0)
		case c.what == nests || c.what == unnests:
			return sameNested(x, y)
		case c.what == releases || c.what == dismisses: // but for changed, the receivers and the line
			return len(x) == 1 || x[0] == y[0]
		}
		return a.String() == b.String()
	}
}

func identity(n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = i
	}
	return p
}

func same(rounds []int8) bool {
	for _, n := range rounds {
		if n != rounds[0] {
			return false
		}
	}
	return true
}

// Setups are all that there are.
func Setups() []*Setup {
	return []*Setup{
		mutexes("plain-2", 2, mutexOf{}, 1, 1),
		mutexes("plain-2-again", 2, mutexOf{anew: true}, 2, 2),
		mutexes("plain-2-fenced", 1, mutexOf{fenced: true, anew: true}, 2, 2),
		mutexes("plain-3", 1, mutexOf{}, 1, 1, 1),
		mutexes("fair-2", 2, mutexOf{fair: true}, 1, 1),
		mutexes("fair-2-fenced", 1, mutexOf{fair: true, fenced: true}, 2, 2),
		mutexes("fair-3", 1, mutexOf{fair: true}, 1, 1, 1),
		readWrites("rw-2", 2, "rw", 1, 1),
		readWrites("rw-2-writers", 2, "ww", 1, 1),
		readWrites("rw-3-readers", 1, "rrw", 1, 1, 1),
		readWrites("rw-3-writers", 1, "rww", 1, 1, 1),
		readWrites("rw-2-turns", 0, "rw", 1, 3),
		readWrites("rw-3-turns", 0, "rww", 1, 2, 1),
		semaphores("permits-2", 2, 1, []int8{1, 1}, 1, 1),
		semaphores("permits-3", 1, 2, []int8{1, 1, 1}, 1, 1, 1),
		semaphores("permits-sizes", 1, 2, []int8{1, 1, 1}, 1, 2, 1),
		counters("counter-2", 2, 1, []int8{1, 1}, 1, 1),
		counters("counter-3", 1, 1, []int8{1, 1, 1}, 1, 1, 1),
		counters("counter-sizes", 1, 2, []int8{1, 1, 1}, 1, 2, 1),
		mutexes("plain-2-nested", 2, mutexOf{nest: true}, 1, 1),
		mutexes("plain-2-leased", 2, mutexOf{leased: true}, 1, 1),
		mutexes("fair-2-nested", 1, mutexOf{fair: true, nest: true}, 1, 1),
		mutexes("named-2", 2, mutexOf{named: 2}, 1, 1),
		mutexes("named-3", 1, mutexOf{named: 2}, 1, 1, 1),
		mutexes("keep-2", 2, mutexOf{keep: true}, 2, 2),
		mutexes("keep-3", 1, mutexOf{keep: true}, 1, 1, 1),
		mutexes("plain-java", 1, mutexOf{java: true}, 1, 1),
		mutexes("plain-watchdog", 1, mutexOf{watchdog: true}, 1, 1),
		readWrites("rw-java-reader", 1, "rwR", 1, 1),
		readWrites("rw-java-writer", 1, "rwW", 1, 1),
		readWrites("rw-java-2", 1, "wW", 1),
		semaphores("permits-java", 1, 1, []int8{1, 1}, 1, 1).withJavaPermits(),
	}
}

func setupOf(name string) (*Setup, error) {
	var names []string
	for _, s := range Setups() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("explore: there is no setup %q; there are %s", name, strings.Join(names, ", "))
}
