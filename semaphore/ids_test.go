package semaphore_test

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Ids have Redisson's shape: 16 bytes in Redis, 32 hex digits for users, and no two are alike.
func TestIDs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		m := semaphore.New(dial(t, s, slow()), "x", 20)
		var all []string
		for _, n := range []int{1, 3} {
			_, p, err := m.Acquire(ctx, n)
			must(t, err)
			ids := p.IDs()
			if len(ids) != n {
				t.Errorf("%d ids for %d permits", len(ids), n)
			}
			all = append(all, ids...)
		}
		var stored []string
		members, err := s.Do(t, "ZRANGE", zset("x"), "0", "-1").AsStrSlice()
		must(t, err)
		for _, id := range members {
			stored = append(stored, hex.EncodeToString([]byte(id)))
		}
		slices.Sort(stored)
		slices.Sort(all)
		if !slices.Equal(stored, all) || len(slices.Compact(all)) != 4 {
			t.Errorf("the ids are %q, and Redis has %q", all, stored)
		}
		for _, id := range all {
			if !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(id) {
				t.Errorf("the id is %q", id)
			}
		}
		if ids := (*semaphore.Permits)(nil).IDs(); len(ids) != 0 {
			t.Errorf("nil permits have ids: %q", ids)
		}
	})
}

// Permits are given back by their ids, all or none, by any process; waiters are woken.
func TestReleaseByID(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		mine, theirs := semaphore.New(dial(t, s, slow()), "x", 3), semaphore.New(dial(t, s, slow()), "x", 3)
		_, p, err := mine.Acquire(ctx, 3)
		must(t, err)
		ids := p.IDs()
		is(t, "one of them is not there", theirs.ReleaseByID(ctx, ids[0], strings.Repeat("0f", 16)), rlock.ErrNotHeld)
		available(t, ctx, theirs, 0)
		waiter := acquire(ctx, theirs, 2)
		redistest.Eventually(t, 10*time.Second, "the waiter to listen", func() bool { return len(s.Channels(t)) == 3 })
		must(t, mine.ReleaseByID(ctx, ids[0], strings.ToUpper(ids[2])))
		g := locktest.Get(t, waiter, 10*time.Second, "the waiter")
		must(t, g.err)
		is(t, "again", mine.ReleaseByID(ctx, ids[0]), rlock.ErrNotHeld)
		is(t, "Release", p.Release(), rlock.ErrLost) // and what is left of them comes back
		must(t, g.p.Release())
		available(t, ctx, mine, 3)
		if n := taken(t, s, "x"); n != 0 {
			t.Errorf("%d are taken", n)
		}
	})
}

// The end of permits is moved by their ids, all or none, by any process.
func TestExtendByID(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		mine, theirs := semaphore.New(dial(t, s, slow()), "x", 3), semaphore.New(dial(t, s, slow()), "x", 3)
		_, p, err := mine.Acquire(ctx, 2, rlock.Lease(time.Minute))
		must(t, err)
		ends := func() (all []time.Duration) {
			for _, id := range raw(p) {
				ms, err := s.Do(t, "ZSCORE", zset("x"), id).AsFloat64()
				must(t, err)
				all = append(all, time.Until(time.UnixMilli(int64(ms))).Round(time.Minute))
			}
			return all
		}
		must(t, theirs.ExtendByID(ctx, 5*time.Minute, p.IDs()...))
		if got := ends(); !slices.Equal(got, []time.Duration{5 * time.Minute, 5 * time.Minute}) {
			t.Errorf("they end in %v", got)
		}
		must(t, theirs.ExtendByID(ctx, 2*time.Minute, p.IDs()[1]))
		is(t, "one is not there", theirs.ExtendByID(ctx, 9*time.Minute, p.IDs()[0], strings.Repeat("0f", 16)), rlock.ErrNotHeld)
		if got := ends(); !slices.Equal(got, []time.Duration{5 * time.Minute, 2 * time.Minute}) {
			t.Errorf("they end in %v", got)
		}
	})
}

// end returns when Redis takes the first of the permits away.
func end(t testing.TB, s *redistest.Server, p *semaphore.Permits) string {
	t.Helper()
	score, err := s.Do(t, "ZSCORE", zset("x"), raw(p)[0]).ToString()
	must(t, err)
	return score
}

// A late copy of ExtendByID moves nothing, and neither does one whose call was overtaken: that
// call is sent again.
func TestLateExtendByIDMovesNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 20*time.Second)
		ses, w := dialWire(t, s, slow())
		m := semaphore.New(ses, "x", 3)
		_, p, err := m.Acquire(ctx, 1, rlock.Lease(time.Hour))
		must(t, err)
		must(t, m.ExtendByID(ctx, time.Second, p.IDs()...))
		late := w.last(t, "extend_by_id")
		must(t, m.ExtendByID(ctx, time.Hour, p.IDs()...))
		before := end(t, s, p)
		deliver(t, s, late)
		if got := end(t, s, p); got != before {
			t.Errorf("the late copy made %s of %s", got, before)
		}
		// As if a call between this one and its second attempt had come first.
		late = w.last(t, "extend_by_id")
		must(t, s.Do(t, "SET", late[5], "3.5", "PX", "60000").Error())
		must(t, m.ExtendByID(ctx, 2*time.Hour, p.IDs()...))
		if got := end(t, s, p); got == before {
			t.Error("a call that was overtaken moved nothing")
		}
	})
}

func TestBadIDs(t *testing.T) {
	s := redistest.Mini(t)
	ctx := within(t, 20*time.Second)
	m := semaphore.New(dial(t, s, slow()), "x", 3)
	id := strings.Repeat("0f", 16)
	for what, c := range map[string]struct {
		ids  []string
		want error
		text string
	}{
		"none":        {nil, rlock.ErrArgument, "at least one"},
		"too short":   {[]string{id[2:]}, rlock.ErrArgument, "32 hex digits"},
		"no hex":      {[]string{"zz" + id[2:]}, rlock.ErrArgument, "32 hex digits"},
		"twice":       {[]string{id, id}, rlock.ErrArgument, "twice"},
		"too many":    {make([]string, semaphore.MaxAtOnce+1), semaphore.ErrLimit, "at most 10000"},
		"not held":    {[]string{id}, rlock.ErrNotHeld, "expired or was given back"},
		"of any case": {[]string{strings.ToUpper(id)}, rlock.ErrNotHeld, "expired or was given back"},
	} {
		for op, err := range map[string]error{
			"ReleaseByID": m.ReleaseByID(ctx, c.ids...), "ExtendByID": m.ExtendByID(ctx, time.Minute, c.ids...),
		} {
			if is(t, what+", "+op, err, c.want); err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s, %s: %v; want %q", what, op, err, c.text)
			}
		}
	}
	is(t, "a lease of 0", m.ExtendByID(ctx, 0, id), rlock.ErrArgument)
	var zero semaphore.Semaphore
	is(t, "a zero value", zero.ReleaseByID(ctx, id), rlock.ErrArgument)
}

// Where one of the permits of an acquisition is taken away, the section ends, and the others are
// given back when it is left, not when their lease ends.
func TestRestOfPermitsIsGivenBackAtOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, noticed := range []bool{true, false} {
			ctx := within(t, time.Minute)
			ses := dial(t, s, rlock.Config{Lease: s.Slowed(3 * time.Second)})
			m := semaphore.New(ses, "x", 3)
			section, p, err := m.Acquire(ctx, 3)
			must(t, err)
			must(t, m.ReleaseByID(ctx, p.IDs()[1]))
			if noticed {
				locktest.Ends(t, section, s.Slowed(2*time.Second), rlock.ErrLost)
				available(t, ctx, m, 1) // the section is not left yet
			}
			is(t, "Release", p.Release(), rlock.ErrLost)
			redistest.Eventually(t, s.Slack(), "the others to come back", func() bool {
				n, err := m.Available(ctx)
				return err == nil && n == 3
			})
			s.FlushAll(t)
		}
	})
}
