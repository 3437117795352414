package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"relock/election"
	"relock/internal/test/redistest"
	"relock/latch"
	"relock/rlock"
	"relock/semaphore"
)

// An election is shown as one, with what its leader has published, and a latch that is waited for as one.
func TestElectionsAndLatches(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session := newCLI(t, s), dialAs(t, s, "db-1")
		const value = "10.0.0.7:5432"
		_, _, err := election.New(session, "e:db").Campaign(within(t), value)
		must(t, err)
		inBackground(t, func(ctx context.Context) error {
			_, _, err := election.New(dial(t, s), "e:db").Campaign(ctx, "next")
			return err
		})
		_, err = latch.New(session, "l:ready").TrySet(within(t), 3)
		must(t, err)
		for range 2 {
			inBackground(t, func(ctx context.Context) error { return latch.New(dial(t, s), "l:ready").Await(ctx) })
		}
		_, err = latch.New(session, "l:alone").TrySet(within(t), 2)
		must(t, err)
		_, err = semaphore.NewCounter(session, "c:free").TrySet(within(t), 7)
		must(t, err)
		describe := func(l lock) string {
			text := fmt.Sprintf("%s %s waiting %d+%d", l.Name, l.Kind, l.Waiting, l.Line)
			if l.Leader != nil {
				text += fmt.Sprintf(" leader %s term %d", l.Leader.Value, l.Leader.Term)
			}
			if l.Left != nil {
				text += fmt.Sprintf(" count %d", *l.Left)
			}
			return text
		}
		const wantElection, wantLatch = "e:db election waiting 0+1 leader " + value + " term 1", "l:ready latch waiting 2+0 count 3"
		settles(t, wantElection+"\n"+wantLatch, func() string {
			var all []string
			for _, l := range decode[[]lock](c, "ls") {
				all = append(all, describe(l))
			}
			return strings.Join(all, "\n")
		})
		for name, want := range map[string]string{
			"e:db": wantElection, "l:ready": wantLatch, "l:alone": "l:alone counter waiting 0+0", "c:free": "c:free counter waiting 0+0",
		} {
			if got := describe(decode[lock](c, "show", name)); got != want {
				t.Errorf("show has %s, want %s", got, want)
			}
		}
		var seen []string
		for _, l := range refreshes(c, "-n", "2", "--interval", "100ms").Top {
			seen = append(seen, describe(l.lock))
		}
		if slices.Sort(seen); !slices.Equal(seen, []string{wantElection, wantLatch}) {
			t.Errorf("top has %q", seen)
		}
		if out := c.want(0, "ls").out; !strings.Contains(out, "db-1 ("+value+")") || !strings.Contains(out, "latch (3 left)") {
			t.Errorf("ls prints\n%s", out)
		}
		if out := c.want(0, "show", "e:db").out; !strings.Contains(out, "kind     election\n") || !strings.Contains(out, "leader   "+value+"\n") {
			t.Errorf("show prints\n%s", out)
		}
		c.want(64, "force", "l:ready")
	})
}

// The leader of an election is what it has published, until it resigns.
func TestLeader(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session := newCLI(t, s), dial(t, s)
		const value = "10.0.0.7:5432"
		_, leads, err := election.New(session, "e:db").Campaign(within(t), value)
		must(t, err)
		inBackground(t, func(ctx context.Context) error {
			_, _, err := election.New(dial(t, s), "e:db").Campaign(ctx, "next")
			return err
		})
		if out := c.want(0, "leader", "e:db").out; out != value+"\n" {
			t.Errorf("leader prints %q", out)
		}
		led := decode[struct {
			Name, Owner, Value string
			Term               int64
		}](c, "leader", "e:db")
		if led.Name != "e:db" || led.Value != value || led.Term != 1 || !strings.HasPrefix(led.Owner, session.ID()+":") {
			t.Errorf("leader --json has %+v", led)
		}
		must(t, leads.Resign())
		settles(t, "next\n", func() string { return c.run("leader", "e:db").out })
		if r := c.want(1, "leader", "nobody"); r.out != "" || !strings.Contains(r.err, "no leader") {
			t.Errorf("where nobody leads leader prints %q and %q", r.out, r.err)
		}
		var e struct{ Exit int }
		if r := c.want(1, "leader", "nobody", "--json"); json.Unmarshal([]byte(r.err), &e) != nil || e.Exit != 1 {
			t.Errorf("in JSON it says %q", r.err)
		}
		c.want(64, "leader")
		c.want(69, "leader", "x", "--redis", "redis://127.0.0.1:1")
	})
}

// An election that nobody leads is still known as one.
func TestElectionWithoutALeader(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		_, leads, err := election.New(dial(t, s), "e").Campaign(within(t), "former")
		must(t, err)
		must(t, leads.Resign())
		if l := decode[lock](c, "show", "e"); l.Kind != "election" || l.Held || l.Leader != nil {
			t.Errorf("show has %+v", l)
		}
		if out := c.want(0, "show", "e").out; strings.Contains(out, "former") {
			t.Errorf("the former leader is shown:\n%s", out)
		}
		c.want(1, "leader", "e")
		c.want(1, "force", "e")
	})
}

// How long a lock has been held lies between two bounds: since its lease was renewed, and since its session
// began.
func TestHeldFor(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session := newCLI(t, s), dialAs(t, s, "web-1")
		_, _, err := rlock.New(session, "x").Lock(within(t))
		must(t, err)
		_, _, err = rlock.New(session, "named").Lock(rlock.WithOwner(within(t), "someone"))
		must(t, err)
		key := "relock_session:" + session.ID()
		now, err := s.Do(t, "TIME").AsIntSlice()
		must(t, err)
		began := func(hours int64) {
			record := fmt.Sprintf(`{"label":"web-1","started":%d,"version":"0.1.0","lease":30000}`, 1000*(now[0]-3600*hours))
			must(t, s.Do(t, "SET", key, record, "PX", "100000").Error())
		}
		began(2)
		held := func(name string, left string) owner {
			t.Helper()
			must(t, s.Do(t, "PEXPIRE", name, left).Error())
			all := decode[[]lock](c, "ls", name)
			if len(all) != 1 || len(all[0].Owners) != 1 {
				t.Fatalf("ls has %+v", all)
			}
			if shown := decode[lock](c, "show", name).Owners[0]; (shown.Least == 0) != (all[0].Owners[0].Least == 0) || shown.Most < all[0].Owners[0].Most {
				t.Errorf("ls has %+v, and show %+v", all[0].Owners[0], shown)
			}
			return all[0].Owners[0]
		}
		const hour, minute = 3600_000, 60_000
		if o := held("x", "25000"); o.Least < 5000 || o.Least > 5000+minute || o.Most < 2*hour || o.Most > 2*hour+minute {
			t.Errorf("5 s after its renewal: %+v", o)
		}
		text := c.want(0, "ls", "x").out
		if !strings.Contains(text, "s-2h0m") {
			t.Errorf("ls prints\n%s", text)
		}
		for left, why := range map[string]string{"1000": "just granted, or a short fixed lease", "60000": "a long fixed lease"} {
			if o := held("x", left); o.Least != 0 || o.Most < 2*hour {
				t.Errorf("%s: %+v", why, o)
			}
		}
		if o := held("named", "25000"); o.Least != 0 || o.Most != 0 {
			t.Errorf("of an owner whose session is not known: %+v", o)
		}
		began(0) // younger than its lease's last renewal would be: the lease is a fixed one
		if o := held("x", "19000"); o.Least != 0 && o.Least > o.Most || o.Most > minute {
			t.Errorf("of a session that has just begun: %+v", o)
		}
	})
}
