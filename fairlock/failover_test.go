package fairlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A dialled is an address that a name leads to. Connections that were made before it changes stay.
type dialled struct{ addr atomic.Value }

// dial makes a session that connects to where the name leads.
func (d *dialled) dial(t testing.TB, s *redistest.Server) *rlock.Session {
	t.Helper()
	opt := s.Option()
	opt.DialCtxFn = func(ctx context.Context, _ string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", d.addr.Load().(string))
	}
	ses, err := rlock.Dial(context.Background(), opt, silent())
	must(t, err)
	t.Cleanup(func() { _ = ses.Close() })
	return ses
}

// After a planned failover the first waiter still listens at the old primary. No listener of its
// counts at the new primary, so the release there lets the second waiter in; yet what the new primary
// publishes reaches the first one by replication. One owner is inside, and the first waiter is not lost.
func TestAPlannedFailoverLetsNoTwoOwnersIn(t *testing.T) {
	t.Parallel()
	primary, replicas := redistest.NewReplicas(t, 1)
	next := replicas[0]
	ctx := within(t, time.Minute)
	var name dialled
	name.addr.Store(primary.Addr)
	a, b := name.dial(t, primary), name.dial(t, primary)
	first := lock(t, ctx, fairlock.New(a, "x"))
	unmoved := goQueued(t, ctx, fairlock.New(b, "x"), 1)
	through := locktest.Hears(t, primary, "through")

	primary.FailOver(t, next)
	name.addr.Store(next.Addr)
	c := dial(t, next, silent())
	second := goQueued(t, ctx, fairlock.New(c, "x"), 2)
	unlock(t, first)
	l := granted(t, second, patience, "the waiter that listens at the new primary")
	must(t, next.Do(t, "PUBLISH", "through", "").Error())
	locktest.Get(t, through, patience, "what was published is through replication")
	pause(100 * time.Millisecond) // for what must not happen
	waits(t, unmoved, "the waiter that listens at the old primary")

	// A command tells its session of the failover.
	unlock(t, lock(t, ctx, fairlock.New(b, "another")))
	waits(t, unmoved, "the waiter that was passed over")
	unlock(t, l)
	unlock(t, granted(t, unmoved, patience, "the waiter that was passed over"))
	nothingLeft(t, next)
}
