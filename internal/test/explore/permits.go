package explore

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"relock/internal/idgen"
	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/test/explore/memredis"
	"relock/internal/waiting"
)

// Load makes a script of a package of this module, by its path from the top, as the package does by itself: what is
// embedded there stands at that path.
func load(path string) *script.Script {
	_, here, _, _ := runtime.Caller(0)
	return script.Load(os.DirFS(filepath.Join(filepath.Dir(here), "../../..")), path)
}

// Permits is what package semaphore tells of a semaphore that has a limit and no end; its tests compare the two.
type Permits struct {
	Names keyname.Names
	Limit int
	Lease int64 // in ms
}

func (p *Permits) channel() string { return p.Names.Prefixed("redisson_sc") }

func (p *Permits) keys() []string {
	return []string{p.Names.Key(), p.Names.Suffixed("timeout"), p.Names.Prefixed("relock_line1")}
}

// Acquire is acquire.lua of semaphore.
func (p *Permits) Acquire(op *kind.Op) script.Command {
	args := []string{script.Millis(op.Lease), strconv.Itoa(p.Limit), p.channel(), p.Names.Publish, "0", script.Flag(op.Next)}
	keys := p.keys()
	if l := &op.Line; l.Head != "" {
		args = append(args, l.Head, script.Flag(l.Again), script.Flag(l.Listens), p.Names.Counts, inbox.Prefix,
			strconv.Itoa(l.Waiting), op.Owner, "", "")
	} else {
		args, keys = append(args, ""), keys[:2]
	}
	return script.Command{Script: permitsAcquire, Keys: keys, Args: idgen.AppendPermits(args, op.Owner, op.N)}
}

// Release is release.lua of semaphore.
func (p *Permits) Release(op *kind.Op) script.Command {
	listens := ""
	if l := &op.Line; l.Others || l.Listens {
		listens = script.Flag(l.Listens)
	}
	args := []string{p.channel(), p.Names.Publish, p.Names.Counts, "0", inbox.Prefix, op.Line.Head, op.Owner, listens, script.Flag(op.Line.Yields)}
	return script.Command{Script: permitsRelease, Keys: p.keys(), Args: idgen.AppendPermits(args, op.Owner, op.N)}
}

// Renew is renew.lua of semaphore for a claim's permits.
func (p *Permits) Renew(op *kind.Op) script.Command {
	return script.Command{Script: permitsRenew, Keys: p.keys()[:2], Args: idgen.AppendPermits([]string{strconv.Itoa(op.N), "0"}, op.Owner, op.N)}
}

var (
	permitsAcquire = load("semaphore/lua/acquire.lua")
	permitsRelease = load("semaphore/lua/release.lua")
	permitsRenew   = load("semaphore/lua/renew.lua")
)

// semaphores is a setup in which each session takes so many permits, once.
func semaphores(name string, faults int8, limit int, rounds []int8, sizes ...int) *Setup {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	set := newSetup(name, faults, rounds)
	p := &Permits{Names: space.Names("sem"), Limit: limit, Lease: set.lease}
	set.key, set.channel, set.limit = "sem", p.channel(), limit
	set.mayFail = failing(loseReply, giveUp, loseMessage, stop, die, vanish)
	for _, n := range sizes {
		if n != sizes[0] {
			set.perms = [][]int{identity(len(sizes))}
		}
	}
	set.alias = make(map[string]string)
	for i := range ids {
		for num := range 10 {
			owner := ids[i:i+1] + ":" + strconv.Itoa(num)
			for n, id := range idgen.AppendPermits(nil, owner, 4) {
				set.alias[id] = owner + "#" + strconv.Itoa(n)
			}
		}
	}
	set.clients = func(set *Setup) (all []client) {
		for i, n := range sizes {
			r := &role{who: int8(i), id: ids[i : i+1], prim: p, mode: 'p', n: n, habits: habits{renews: true}, flaws: set.flaws()}
			r.want = waiting.Want{Session: r.id, Permits: n, Lease: ms(set.grantLease), Life: ms(set.life)}
			all = append(all, &locker{role: r, rounds: rounds[i]})
		}
		return all
	}
	set.ofPermits(p)
	return set
}

// withJavaPermits adds a Java thread that wants one permit. To Redisson there are none of a semaphore that is not there.
func (set *Setup) withJavaPermits() *Setup {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	set.prepare = func(r *memredis.Redis) { r.Do("SET", set.key, strconv.Itoa(set.limit)) }
	return set.withJava(javaPermits{&Permits{Names: space.Names("sem"), Limit: set.limit, Lease: set.lease}}, 'p', 1, 1)
}

// ofPermits is what is true of Redis's side of a semaphore.
func (set *Setup) ofPermits(p *Permits) {
	taken := func(w *world) (owners []string) {
		for k := range w.redis.Keys {
			for _, m := range k.Members {
				if owner := set.alias[m.Name]; owner != "" && m.Score > float64(w.now()) && !contains(owners, owner[:3]) {
					owners = append(owners, owner[:3])
				}
			}
		}
		return owners
	}
	free := func(w *world) int {
		for k := range w.redis.Keys {
			if k.Name == set.key {
				n, _ := strconv.Atoi(k.Text)
				return n
			}
		}
		return p.Limit
	}
	set.owners = taken
	set.stands = func(w *world, who int, t trust) bool {
		return contains(taken(w), ids[who:who+1]+":"+strconv.Itoa(int(t.num)))
	}
	set.endless = func(key string) bool { return key == "sem" || key == p.keys()[1] }
	set.remains = func(*memredis.Key) bool { return false }
	set.free = func(w *world) bool { return free(w) > 0 }
	set.counts = func(w *world) string {
		n := 0
		for k := range w.redis.Keys {
			if k.Name == p.keys()[1] {
				n = len(k.Members)
			}
		}
		if f := free(w); n+f != p.Limit || f < 0 {
			return strconv.Itoa(n) + " permits are taken, and " + strconv.Itoa(f) + " are free, of " + strconv.Itoa(p.Limit)
		}
		return ""
	}
	set.sameTwice = func(c *command, a, b memredis.Reply, told bool) bool {
		x, err := a.Numbers()
		y, err2 := b.Numbers()
		switch {
		case err != nil || err2 != nil:
			return false
		case c.what == acquires && (len(x) == 1 || x[0] == 1):
			return len(y) == 1 || y[0] == 1
		case c.what == acquires:
			return len(y) > 1 && y[0] == 0 && (told || x[1] == y[1])
		case c.what == renews:
			return a.String() == b.String()
		}
		return true
	}
	set.judge = func() judge { return inOrder{} }
}
