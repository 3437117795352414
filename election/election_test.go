package election_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"relock/election"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Candidates lead one after the other, in the order of arrival and in growing terms. Leader
// tells who, and with which value; a value may be changed.
func TestCampaign(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b, c := dial(t, s, slow()), dial(t, s, slow()), dial(t, s, slow())
		_, err := election.New(c, "x").Leader(ctx)
		is(t, "before anybody leads", err, election.ErrNoLeader)
		first := leads(t, campaign(t, ctx, a, "a", 0), 1)
		second, third := campaign(t, ctx, b, "b", 1), campaign(t, ctx, c, "", 2)
		sees(t, ctx, c, 1, "a")
		for _, value := range []string{"a2", "", "a\r\n\x00"} {
			must(t, first.l.Publish(ctx, value))
			sees(t, ctx, c, 1, value)
		}
		waits(t, second)
		must(t, first.l.Resign())
		ends(t, first.section, patience, rlock.ErrReleased)
		is(t, "a second Resign", first.l.Resign(), rlock.ErrNotHeld)
		is(t, "Publish after Resign", first.l.Publish(ctx, "late"), rlock.ErrNotHeld)
		e := leads(t, second, 2)
		sees(t, ctx, a, 2, "b")
		waits(t, third)
		must(t, e.l.Resign())
		e = leads(t, third, 3)
		sees(t, ctx, a, 3, "")
		must(t, e.l.Resign())
		_, err = election.New(c, "x").Leader(ctx)
		is(t, "after all have resigned", err, election.ErrNoLeader)
	})
}

// A candidate that gives up leaves the queue; on the context of its own leadership it re-enters.
func TestGivingUpAndNested(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, b := dial(t, s, slow()), dial(t, s, slow())
		stalls := locktest.WatchStalls(t)
		first := leads(t, campaign(t, ctx, a, "a", 0), 1)
		_, _, err := election.New(b, "x").Campaign(ctx, "b", rlock.Wait(0))
		is(t, "Wait(0)", err, rlock.ErrNotAcquired)
		_, _, err = election.New(b, "x").Campaign(ctx, "b", rlock.Wait(30*time.Millisecond))
		is(t, "Wait", err, rlock.ErrNotAcquired)
		left(t, ctx, s, b, stalls)
		short, cancel := context.WithCancel(ctx)
		waiter := campaign(t, short, b, "b", 1)
		cancel()
		e := locktest.Get(t, waiter, patience, "the end of a campaign")
		is(t, "cancelled", e.err, rlock.ErrNotAcquired, context.Canceled)
		left(t, ctx, s, b, stalls)

		_, nested, err := election.New(a, "x").Campaign(first.section, "nested")
		must(t, err)
		if nested.Term() != 1 {
			t.Errorf("the nested term is %d", nested.Term())
		}
		sees(t, ctx, b, 1, "nested")
		must(t, first.l.Publish(ctx, "outer"))
		sees(t, ctx, b, 1, "outer")
		must(t, first.l.Resign())
		if first.section.Err() != nil {
			t.Error("the leadership has ended at the first of two Resigns")
		}
		must(t, nested.Resign())
		ends(t, first.section, patience, rlock.ErrReleased)
	})
}

// A Resign makes the next candidate the leader by its one command: that one sends nothing but
// its value, and the renewal that confirms every grant.
func TestResignHandsOver(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		a, pa := locktest.DialProxy(t, s, slow())
		b, pb := locktest.DialProxy(t, s, slow())
		first := leads(t, campaign(t, ctx, a, "a", 0), 1)
		second := campaign(t, ctx, b, "b", 1)
		pa.Reset()
		pb.Reset()
		must(t, first.l.Resign())
		leads(t, second, 2)
		if log := pa.Log(); len(log) != 1 {
			t.Errorf("the old leader has sent %q", log)
		}
		if log := pb.Log(); len(log) > 2 || locktest.Sent(pb, locktest.Runs(src["publish"])) != 1 {
			t.Errorf("the new leader has sent %q", log)
		}
	})
}

// refuses checks that each call of an election fails like that.
func refuses(t *testing.T, what string, e *election.Election, ctx context.Context, want error) {
	t.Helper()
	_, l, err := e.Campaign(ctx, "v")
	is(t, what+": Campaign", err, want)
	is(t, what+": Resign", l.Resign(), rlock.ErrNotHeld)
	_, err = e.Leader(ctx)
	is(t, what+": Leader", err, want)
	_, err = e.Observe(ctx)
	is(t, what+": Observe", err, want)
	if err := e.Run(ctx, "v", election.Callbacks{OnNewLeader: func(election.Leader) {}}); want != context.Canceled {
		is(t, what+": Run", err, want)
	} else if err != nil { // it has ended as it should
		t.Errorf("%s: Run: %v", what, err)
	}
	if e.IsLeader() {
		t.Errorf("%s: it leads", what)
	}
}

// The wrong arguments are errors that change nothing; wrong receivers do not panic.
func TestBadInput(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, patience)
		ses := dial(t, s, slow())
		var none *election.Election
		var nobody *election.Leadership
		e := election.New(ses, "x")
		refuses(t, "nil", none, ctx, rlock.ErrArgument)
		refuses(t, "zero", new(election.Election), ctx, rlock.ErrArgument)
		refuses(t, "no session", election.New(nil, "x"), ctx, rlock.ErrArgument)
		refuses(t, "no name", election.New(ses, ""), ctx, rlock.ErrName)
		refuses(t, "nil context", e, nil, rlock.ErrArgument)
		done, cancel := context.WithCancel(ctx)
		cancel()
		refuses(t, "ctx done", e, done, context.Canceled)
		if e.Name() != "x" || e.Session() != ses || none.Name() != "" || none.Session() != nil {
			t.Errorf("the names are %q and %q, the sessions %v and %v", e.Name(), none.Name(), e.Session(), none.Session())
		}
		_, _, err := e.Campaign(rlock.WithOwner(ctx, "me"), "v")
		is(t, "a named owner", err, rlock.ErrArgument)
		is(t, "a named owner: Run", e.Run(rlock.WithOwner(ctx, "me"), "v", election.Callbacks{}), rlock.ErrArgument)
		_, _, err = e.Campaign(ctx, "v", nil)
		is(t, "a nil option", err, rlock.ErrArgument)
		is(t, "Publish", nobody.Publish(ctx, "v"), rlock.ErrNotHeld)
		is(t, "Publish", new(election.Leadership).Publish(ctx, "v"), rlock.ErrNotHeld)
		is(t, "Resign", new(election.Leadership).Resign(), rlock.ErrNotHeld)
		if nobody.Term() != 0 || new(election.Leadership).Term() != 0 {
			t.Error("a nil leadership has a term")
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("keys: %q", keys)
		}
		// Another type under the leader's key: the candidate does not go on leading.
		must(t, s.Do(t, "SET", "relock_leader:{x}", "text").Error())
		if _, _, err := e.Campaign(ctx, "v"); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			t.Errorf("Campaign: %v", err)
		}
		st, err := rlock.New(ses, "x").State(ctx)
		must(t, err)
		if len(st.Owners) != 0 {
			t.Errorf("the lock is held by %v", st.Owners)
		}
		must(t, ses.Close())
		refuses(t, "closed", e, ctx, rlock.ErrClosed)
	})
}

// Random candidates of three sessions lead, resign and give up: never two
// at a time, terms grow, and each leader sees itself.
func TestRandom(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 2*time.Minute)
		sessions := []*rlock.Session{dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{}), dial(t, s, rlock.Config{})}
		total := locktest.Cycles(t, s, 2000)
		if testing.Short() {
			total /= 5
		}
		var inside atomic.Int32
		var last, done, led atomic.Int64
		var wg sync.WaitGroup
		seen, err := election.New(sessions[0], "x").Observe(ctx)
		must(t, err)
		for w := range 9 {
			e := election.New(sessions[w%3], "x")
			wg.Go(func() {
				for n := done.Add(1); n <= total && !t.Failed(); n = done.Add(1) {
					var opts []rlock.LockOption
					if n%5 == 0 {
						opts = append(opts, rlock.Wait(time.Duration(n%7)*time.Millisecond))
					}
					section, l, err := e.Campaign(ctx, "v", opts...)
					if err != nil {
						if !errors.Is(err, rlock.ErrNotAcquired) {
							t.Errorf("Campaign: %v", err)
						}
						continue
					}
					led.Add(1)
					if inside.Add(1) != 1 {
						t.Error("two lead at once")
					}
					if before := last.Swap(l.Term()); before >= l.Term() {
						t.Errorf("term %d follows %d", l.Term(), before)
					}
					if now, err := e.Leader(section); err != nil || now.Term != l.Term() || now.Value != "v" {
						t.Errorf("the leader of term %d sees %+v, %v", l.Term(), now, err)
					}
					inside.Add(-1)
					if err := l.Resign(); err != nil {
						t.Errorf("Resign: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if led.Load() < total/2 {
			t.Errorf("only %d of %d led", led.Load(), total)
		}
		var latest, now int64
		for len(seen) > 0 {
			if now = (<-seen).Term; now < latest {
				t.Errorf("an observer saw term %d after %d", now, latest)
			}
			latest = now
		}
	})
}
