package election_test

import (
	"strings"
	"testing"
	"time"

	"relock/election"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Any name works, in a Cluster too.
func TestNames(t *testing.T) {
	check := func(t *testing.T, ses *rlock.Session) {
		ctx := within(t, time.Minute)
		for _, name := range []string{"x", "a b \x00", "{b}", "a{b}c", "a}b", "a{b", "{}x", strings.Repeat("long", 256)} {
			e := election.New(ses, name)
			seen, err := e.Observe(ctx)
			must(t, err)
			_, l, err := e.Campaign(ctx, name)
			must(t, err)
			observes(t, seen, 1, name)
			must(t, l.Publish(ctx, "new"))
			observes(t, seen, 1, "new")
			must(t, l.Resign())
		}
	}
	t.Run("single", func(t *testing.T) {
		redistest.Each(t, func(t *testing.T, s *redistest.Server) { check(t, dial(t, s, slow())) })
	})
	t.Run("cluster", func(t *testing.T) {
		redistest.SkipShort(t)
		ses, err := rlock.Dial(within(t, time.Minute), redistest.NewCluster(t).Option(), slow())
		must(t, err)
		defer ses.Close()
		check(t, ses)
	})
}

func TestScripts(t *testing.T) {
	two := locktest.Keys("x", "l")
	me := locktest.Args("me", "7", "3", "v", "ch", "PUBLISH")
	set, run := locktest.Setup, locktest.Case
	cases := []locktest.ScriptCase{
		run("the first value", "publish", set("HSET x me 1"), two, me, "1", "1", "l{owner:me revision:3 term:7 value:v} x{me:1}"),
		run("after another leader", "publish", set("HSET x me 1", "HSET l owner you term 6 revision 9 value w"), two, me, "1", "1", "l{owner:me revision:3 term:7 value:v} x{me:1}"),
		run("a later value", "publish", set("HSET x me 1", "HSET l owner me term 7 revision 2 value w"), two, me, "1", "1", "l{owner:me revision:3 term:7 value:v} x{me:1}"),
		run("an earlier value", "publish", set("HSET x me 1", "HSET l owner me term 7 revision 4 value w"), two, me, "1", "1", "l{owner:me revision:4 term:7 value:w} x{me:1}"),
		run("another leads", "publish", set("HSET x you 1"), two, me, "0", "0", "x{you:1}"),
		run("nobody leads", "publish", nil, two, me, "0", "0", ""),
		run("another type", "publish", set("SET x 1"), two, me, "WRONGTYPE", "WRONGTYPE", "x=1"),
		run("another type of leader", "publish", set("HSET x me 1", "SET l 1"), two, me, "WRONGTYPE", "WRONGTYPE", "l=1 x{me:1}"),

		run("one leads", "leader", set("HSET x me 1", "HSET l owner me term 7 revision 2 value w"), two, nil, "[me 7 w]", "[me 7 w]", "l{owner:me revision:2 term:7 value:w} x{me:1}"),
		run("another leads, who has not published", "leader", set("HSET x you 1", "HSET l owner me term 7 revision 2 value w"), two, nil, "[1]", "[1]", "l{owner:me revision:2 term:7 value:w} x{you:1}"),
		run("the first one leads, who has not published", "leader", set("HSET x you 1"), two, nil, "[1]", "[1]", "x{you:1}"),
		run("the leader is gone", "leader", set("HSET l owner me term 7 revision 2 value w"), two, nil, "[]", "[]", "l{owner:me revision:2 term:7 value:w}"),
		run("nobody ever led", "leader", nil, two, nil, "[]", "[]", ""),
		run("another type", "leader", set("SET x 1", "HSET l owner me term 7 revision 2 value w"), two, nil, "WRONGTYPE", "WRONGTYPE", "l{owner:me revision:2 term:7 value:w} x=1"),
		run("another type of leader", "leader", set("HSET x me 1", "SET l 1"), two, nil, "WRONGTYPE", "WRONGTYPE", "l=1 x{me:1}"),
	}
	locktest.RunScripts(t, src, cases)
	locktest.RefuseWrites(t, src, cases)
	locktest.CheckHeaders(t, src)
}

// The ACL that docs/operations.md gives is enough (R29).
func TestDocumentedACLIsEnough(t *testing.T) {
	s := redistest.Real(t)
	must(t, s.Do(t, redistest.DocumentedACL(t)...).Error())
	must(t, s.Do(t, "ACL", "LOG", "RESET").Error())
	opt := s.Option()
	opt.Username, opt.Password = "locks", "secret"
	ctx := within(t, patience)
	cfg := slow()
	cfg.Prefix = "app:"
	ses, err := rlock.Dial(ctx, opt, cfg)
	must(t, err)
	seen, err := election.New(ses, "x").Observe(ctx)
	must(t, err)
	first := leads(t, campaign(t, ctx, ses, "a", 0), 1)
	observes(t, seen, 1, "a")
	second := campaign(t, ctx, ses, "b", 1)
	must(t, first.l.Resign())
	e := leads(t, second, 2)
	observes(t, seen, 2, "b")
	must(t, e.l.Resign())
	must(t, ses.Close())
	log, err := s.Do(t, "ACL", "LOG").ToArray()
	must(t, err)
	for _, entry := range log {
		t.Errorf("refused: %v", entry.String())
	}
}
