// Package calls counts the functions of this module that the ways through a lock run: a measure of how
// much there is to read. "make calls" lists them. [Paths] is the table of these ways, and command path
// goes one of them.
package calls

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A Path is a way through a lock, from the first Lock to what follows from the last Unlock.
type Path struct {
	Name string
	// Most is how many functions the path may run: as many as it does. A change that needs more raises it,
	// and should have a reason to.
	Most int
	// Runs and Not are functions that show whether it is this path that was gone.
	Runs, Not []string
	// Sockets has the path gone by the real clock, on connections as they are in use. All others are gone
	// in a bubble, whose clock is made up and whose connections are in memory. There a path that waits takes
	// the same steps at the same times, however busy the machine is: a session that listens after some
	// milliseconds as the first of a line, for one, does so in each run or in none.
	Sockets bool
	// prepare makes what the path needs, and returns what is counted. That is called several times before, so
	// that what is done once, and what is kept for reuse, does not count.
	prepare func(t *testing.T) (once func())
}

// Paths are the paths that are counted. A path counts with its holder's Lock and with what goes on behind it,
// as a round of the watchdog whose time to wake up has changed. In a bubble commands go over the shared
// connection, for the direct one needs a socket: the session looks each time whether it is time to make one.
var Paths = []Path{
	// The commands go over the shared connection, as in a Cluster.
	{Name: "uncontended on the shared connection", Most: 52, Sockets: true, Not: []string{"*link.SetDeadline"},
		prepare: func(t *testing.T) func() { return pairs(t, false) }},
	// They go over the direct connection, as where the lock's Redis is a single server and the caller is alone.
	{Name: "uncontended on the direct connection", Most: 52, Sockets: true, Runs: []string{"*link.SetDeadline"},
		prepare: func(t *testing.T) func() { return pairs(t, true) }},

	// A caller waits for another of its session, and is passed the lock on in memory.
	{Name: "contended in one session", Most: 72, Runs: []string{"*lock.handOver"}, Not: []string{"*Session.hearLine"},
		prepare: func(t *testing.T) func() {
			m := rlock.New(locktest.Dial(t, redistest.BubbleMini(t), rlock.Config{}), "x")
			return func() { inTurn(t, m, m, 0) }
		}},

	// A caller waits in the line for another session, and hears that the lock was given to it. Nobody holds
	// the lock for as long as anything is due: no waiter listens to the lock's channel, and no hold is renewed.
	{Name: "two sessions and the plain lock", Most: 85,
		Runs: []string{"*Session.hearLine"}, Not: []string{"*Session.renew", "*acquisition.listen"},
		prepare: func(t *testing.T) func() {
			a, b := two(t, rlock.Config{})
			ma, mb := rlock.New(a, "x"), rlock.New(b, "x")
			return func() { inTurn(t, ma, mb, 0) }
		}},

	// The same with the fair lock, whose waiter is heard of once and whose hold is renewed once meanwhile: a
	// heartbeat is due after 100 ms, or up to 25 before that, and a renewal after 120, or up to 12 before. Longer
	// times would do as well, but not a second: then the waiter's session looks for a deadlock.
	{Name: "two sessions and the fair lock", Most: 151,
		Runs: []string{"*Session.hearLine", "*Session.heartbeat", "*Session.renew"}, Not: []string{"*Hub.watch", "*acquisition.listen"},
		prepare: func(t *testing.T) func() {
			a, b := two(t, rlock.Config{Lease: 360 * time.Millisecond, QueueLease: 480 * time.Millisecond})
			ma, mb := fairlock.New(a, "x"), fairlock.New(b, "x")
			return func() { inTurn(t, ma, mb, 150*time.Millisecond) }
		}},

	// A hold is renewed once: that is due each third of its lease. A lease of some seconds would do as well,
	// but then the hub looks after its connections meanwhile, which it does each second.
	{Name: "renewal", Most: 47, Runs: []string{"*Session.renew"}, Not: []string{"*Hub.watch", "*Record.rewrite"},
		prepare: func(t *testing.T) func() {
			const lease = 450 * time.Millisecond
			m := rlock.New(locktest.Dial(t, redistest.BubbleMini(t), rlock.Config{Lease: lease}), "x")
			t.Cleanup(lock(t, m))
			return func() { time.Sleep(lease / 3) }
		}},
}

const (
	// rounds is how often a path is gone before it is counted: the first times arm the watchdog, and find what
	// is reused later.
	rounds = 20
	// rest is between two rounds of the made-up clock, so that what was due in one is over when the next begins:
	// else a heartbeat that the round before has agreed on comes at the same moment as a release. All rounds
	// together take less than a minute, after which a session writes its record again, and the last one lies
	// between two seconds, at which the hub looks after its connections.
	rest = 640 * time.Millisecond
)

// Go goes the path so often that all is as it mostly is, calls before, goes it once more, and calls after. It
// must be called in a bubble, unless the path is of Sockets.
func (p *Path) Go(t *testing.T, before, after func() error) {
	once := p.prepare(t)
	for range rounds {
		once()
		if !p.Sockets {
			time.Sleep(rest)
		}
	}
	p.settle()
	locktest.Must(t, before())
	once()
	p.settle()
	locktest.Must(t, after())
}

// settle waits until no goroutine of the sessions has anything left to do at this moment. By the real clock
// that cannot be known, and need not be: an uncontended pair leaves nothing to others.
func (p *Path) settle() {
	if !p.Sockets {
		synctest.Wait()
	}
}

// pairs returns what locks and unlocks a free lock.
func pairs(t *testing.T, direct bool) func() {
	opt := redistest.Mini(t).Option()
	opt.ForceSingleClient = direct // else miniredis is taken for a Cluster
	s, err := rlock.Dial(context.Background(), opt, rlock.Config{})
	locktest.Must(t, err)
	t.Cleanup(func() { locktest.Must(t, s.Close()) })
	m := rlock.New(s, "x")
	return func() { lock(t, m)() }
}

// two makes two sessions on one server.
func two(t *testing.T, cfg rlock.Config) (a, b *rlock.Session) {
	s := redistest.BubbleMini(t)
	return locktest.Dial(t, s, cfg), locktest.Dial(t, s, cfg)
}

// A mutex is an exclusive lock of any kind.
type mutex interface {
	Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

// inTurn has a caller hold a lock for so long after the next one waits, and that one unlock it at once.
func inTurn(t *testing.T, first, next mutex, d time.Duration) {
	unlock := lock(t, first)
	got := make(chan func())
	go func() { got <- lock(t, next) }()
	synctest.Wait() // until the next one sleeps, in Redis's line if it stands in one
	time.Sleep(d)
	unlock()
	unlock = <-got
	unlock()
}

// lock locks as a service does, with a context that can be cancelled and no options, and returns what unlocks.
func lock(t *testing.T, m mutex) (unlock func()) {
	ctx, cancel := context.WithCancel(context.Background())
	_, hold, err := m.Lock(ctx)
	if err != nil {
		t.Error(err)
		return cancel
	}
	return func() {
		defer cancel()
		if err := hold.Unlock(); err != nil {
			t.Error(err)
		}
	}
}
