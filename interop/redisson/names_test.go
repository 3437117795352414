package redisson

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// nameRows: both sides must make the same keys and channels of a name.
var nameRows = []row{
	{"EveryShape", everyShape},
	{"Odd", oddNames},
	{"Prefix", prefixIsNameMapper},
	{"Channels", channelsAreThoseOfJava},
	{"OtherWorldOfChannels", otherWorldOfChannels},
}

// everyShape holds with one side and waits with the other, in both directions.
func everyShape(t *testing.T, e *env) {
	for _, shape := range []string{"%", "{%}", "a{%}b", "{%}:a{b}", "a b %", "gr\u00fc\u00dfe:% \u2713", "%*?[x]", strings.Repeat("long", 256) + "%"} {
		name := strings.ReplaceAll(shape, "%", redistest.Name(t))
		meet(t, e, e.java, e.session(t, patient), name, name)
	}
}

// oddNames are those that Redisson itself cannot use in a Cluster; on a single server they
// are names like any other.
func oddNames(t *testing.T, e *env) {
	for _, shape := range []string{"a}%", "a{%", "{}%"} {
		name := strings.ReplaceAll(shape, "%", redistest.Name(t))
		if e.cluster == nil {
			meet(t, e, e.java, e.session(t, patient), name, name)
			continue
		}
		// So Go is free there, and works.
		m := rlock.New(e.session(t, patient).Session, name)
		g := take(t, m.Lock)
		refuses(t, m.TryLock)
		locktest.Must(t, g.h.Unlock())
	}
}

// A prefix in Config is a NameMapper that adds the same.
func prefixIsNameMapper(t *testing.T, e *env) {
	mapped := startPeer(t, e, "prefix="+e.prefix+"more:")
	cfg := patient
	cfg.Prefix = "more:"
	name := redistest.Name(t)
	meet(t, e, mapped, e.session(t, cfg), name, name)
	meet(t, e, mapped, e.session(t, patient), name, "more:"+name)
}

// meet has a Java thread and a session wait for each other at a lock of each kind.
func meet(t *testing.T, e *env, p *peer, s *side, java, ours string) {
	t.Helper()
	j, other := p.thread(t), p.thread(t)
	for _, k := range exclusives {
		m := k.of(s.Session, ours)
		j.do(k.java, java, "lock")
		waiter := s.queue(t, ours, m.Lock)
		j.do(k.java, java, "unlock")
		g := woken(t, waiter)
		back := j.start(k.java, java, "lock")
		j.waits(back)
		locktest.Must(t, g.h.Unlock())
		wokenJava(t, back)
		j.do(k.java, java, "unlock")
	}
	r := take(t, rwlock.New(s.Session, ours).RLock)
	j.do("read", java, "lock")
	j.do("read", java, "unlock")
	other.want("false", "write", java, "try")
	locktest.Must(t, r.h.Unlock())

	const more = ":permits" // a name is for one kind of thing
	m := semaphore.New(s.Session, ours+more, 1)
	p1 := tryPermits(t, m, 1)
	waiter := j.start("permits", java+more, "acquire", "1", ms(time.Minute))
	j.waits(waiter)
	locktest.Must(t, p1.p.Release())
	id := wokenJava(t, waiter)
	mine := s.acquires(t, ours+more, m, 1)
	j.do("permits", java+more, "release", id)
	locktest.Must(t, wokenPermits(t, mine).p.Release())
}

// Both sides listen on the same channel, in the same world of channels.
func channelsAreThoseOfJava(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	holder := take(t, rlock.New(e.session(t, patient).Session, name).Lock)
	waiter := s.queue(t, name, rlock.New(s.Session, name).Lock)
	back := j.start("lock", name, "lock")
	j.waits(back)
	channel := "redisson_lock__channel:{" + e.key(name) + "}"
	if n := e.subscribers(t, channel); n != 2 {
		t.Errorf("%d clients listen on %s, not two, and a moment later %d; Go had been refused %d times, Java sleeps: %v",
			n, channel, e.subscribers(t, channel), s.attempts(name), j.parked())
	}
	locktest.Must(t, holder.h.Unlock())
	// The first of them lets in the other.
	select {
	case g := <-waiter:
		locktest.Must(t, g.err)
		locktest.Must(t, g.h.Unlock())
		wokenJava(t, back)
	case a := <-back:
		locktest.Must(t, a.err)
		j.do("lock", name, "unlock")
		woken(t, waiter)
	case <-time.After(wokenWithin):
		t.Fatal("nobody was woken")
	}
}

// A Java process that was told not to use sharded channels neither hears nor is heard; the
// lock excludes all the same, and who waits looks by himself.
func otherWorldOfChannels(t *testing.T, e *env) {
	if e.cluster == nil {
		t.Skip("a single server has one world of channels")
	}
	name := redistest.Name(t)
	s := e.session(t, rlock.Config{PollFloor: 200 * time.Millisecond})
	m := rlock.New(s.Session, name)
	j := startPeer(t, e, "sharded=OFF").thread(t)
	j.do("lock", name, "lock")
	waiter := s.queue(t, name, m.Lock)
	j.do("lock", name, "unlock")
	locktest.Must(t, woken(t, waiter).h.Unlock()) // at the poll floor
	g := take(t, m.Lock, rlock.Lease(2*short))
	java := j.start("lock", name, "lock")
	j.waits(java)
	locktest.Must(t, g.h.Unlock())
	wokenJava(t, java) // when the lease that it has seen is over
}

// subscribers counts who listens on a channel of a lock: a sharded one, in a Cluster.
func (e *env) subscribers(t testing.TB, channel string) (n int) {
	t.Helper()
	ask, servers := "NUMSUB", []*redistest.Server{e.single}
	if e.cluster != nil {
		ask, servers = "SHARDNUMSUB", nil
		for _, addr := range e.addrs {
			servers = append(servers, e.cluster.Node(addr))
		}
	}
	for _, server := range servers {
		reply, err := server.Do(t, "PUBSUB", ask, channel).ToArray()
		locktest.Must(t, err)
		if i := slices.IndexFunc(reply, func(m rueidis.RedisMessage) bool { text, _ := m.ToString(); return text == channel }); i >= 0 {
			count, err := reply[i+1].AsInt64()
			locktest.Must(t, err)
			n += int(count)
		}
	}
	return n
}
