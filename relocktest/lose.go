package relocktest

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	"relock/election"
	"relock/fairlock"
	"relock/internal/engine"
	"relock/multilock"
	"relock/rlock"
	"relock/semaphore"
)

// LoseLeadership takes the leadership away from the leader, as [Redis.Lose] does a lock: its context
// ends with the cause [rlock.ErrLost], a Run returns that, and the next candidate leads. It ends the test
// if nobody leads.
func (r *Redis) LoseLeadership(tb testing.TB, e *election.Election) {
	tb.Helper()
	if e.Session() == nil {
		tb.Fatal("relocktest: lose: the election is nil or a zero value; make it with election.New")
	}
	r.Lose(tb, fairlock.New(e.Session(), e.Name()))
}

// LosePermits takes all permits of a semaphore away from their holders, as an operator's ReleaseByID does.
// They are free at once, also for waiters. No message tells the holders: their sections end with
// [rlock.ErrLost] at the next renewal of their sessions, after a third of Config.Lease (10 s by default)
// at most, and Release returns ErrLost from now on. With a fixed lease Release may be the first to
// tell. It ends the test if no permit is out.
func (r *Redis) LosePermits(tb testing.TB, m *semaphore.Semaphore) {
	tb.Helper()
	if m == nil || m.Session() == nil {
		tb.Fatal("relocktest: lose: the semaphore is nil or a zero value; make it with semaphore.New")
	}
	r.losePermits(tb, m)
}

// LoseAll takes all locks of a multilock away, as [Redis.Lose] and [Redis.LosePermits] do. The locks must
// be of this Redis. It ends the test if one of them is not held; to lose a single one give that to Lose.
func (r *Redis) LoseAll(tb testing.TB, m *multilock.Mutex) {
	tb.Helper()
	parts := m.Parts()
	if len(parts) == 0 {
		tb.Fatal("relocktest: lose: the multilock has no locks; make it with multilock.New")
	}
	type lock struct {
		session *rlock.Session
		name    string
	}
	lost := map[lock]bool{}
	for _, p := range parts {
		switch l := p.(type) {
		case Locker:
			if at := (lock{p.Session(), p.Name()}); !lost[at] { // else it is the other side of a read-write lock
				lost[at] = true
				r.Lose(tb, l)
			}
		case permits:
			r.losePermits(tb, l)
		default:
			tb.Fatalf("relocktest: lose: %q is a %T, which relocktest cannot take away", p.Name(), p)
		}
	}
}

// permits is a semaphore, or some permits of one as a part of a multilock.
type permits interface {
	Session() *rlock.Session
	Name() string
	ReleaseByID(ctx context.Context, ids ...string) error
}

func (r *Redis) losePermits(tb testing.TB, m permits) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	names, err := (*engine.Session)(m.Session()).Names(m.Name())
	if err != nil {
		tb.Fatalf("relocktest: lose: %v", err)
	}
	out, err := r.mini.ZMembers(names.Suffixed("timeout"))
	if len(out) == 0 {
		tb.Fatalf("relocktest: lose: no permit of %q is out (%v)", m.Name(), err)
	}
	for i, id := range out {
		out[i] = hex.EncodeToString([]byte(id))
	}
	for ids := range slices.Chunk(out, semaphore.MaxAtOnce) {
		err := m.ReleaseByID(ctx, ids...)
		if errors.Is(err, rlock.ErrNotHeld) { // some were given back meanwhile: then none of them is now
			err = nil
			for _, id := range ids {
				if bad := m.ReleaseByID(ctx, id); bad != nil && !errors.Is(bad, rlock.ErrNotHeld) {
					err = bad
				}
			}
		}
		if err != nil {
			tb.Fatalf("relocktest: lose: %v", err)
		}
	}
}
