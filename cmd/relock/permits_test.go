package main_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/idgen"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Permits are shown by the acquisition that they came with. One of Redisson's, whose id is
// random, is shown by that.
func TestShowPermits(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		const java = "00112233445566778899aabbccddeeff"
		mine := map[string]int64{java: 1}
		for label, all := range map[string][]int{"one": {3, 1}, "two": {2}} {
			session := dialAs(t, s, label)
			for _, n := range all {
				_, p, err := semaphore.New(session, "x", 20).Acquire(within(t), n)
				must(t, err)
				mine[p.IDs()[0][:24]+" "+label] = int64(n)
			}
		}
		raw, err := hex.DecodeString(java)
		must(t, err)
		must(t, s.Do(t, "ZADD", "{x}:timeout", "92233720368547758", string(raw)).Error()) // Redisson's for no lease
		got := map[string]int64{}
		for _, o := range decode[lock](c, "show", "x").Owners {
			if o.Process != nil {
				o.ID += " " + o.Process.Label
			}
			got[o.ID] = o.Holds
		}
		if !maps.Equal(got, mine) {
			t.Errorf("the owners are %v, want %v", got, mine)
		}
		if text := c.want(0, "show", "x").out; !strings.Contains(text, "lease    without end\n") {
			t.Errorf("show says %s", text)
		}
		g := newGate(t)
		r := c.start("run", "--permits", "2", "--limit", "20", "--label", "backup", "x", "--", "sh", "-c",
			`echo $RELOCK_OWNER; while [ -e "$0" ]; do sleep 0.02; done`, string(g))
		id := r.line()
		i := slices.IndexFunc(decode[lock](c, "show", "x").Owners, func(o owner) bool {
			return o.ID == id && o.Holds == 2 && o.Process != nil && o.Process.Label == "backup"
		})
		if i < 0 {
			t.Errorf("run says that its owner is %q, and show: %s", id, c.want(0, "show", "x").out)
		}
		g.open(t)
		if code := r.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}

// The permits of two sessions whose ids have the same mark are nobody's: neither is called by
// the other's name.
func TestShowPermitsOfTwins(t *testing.T) {
	seen := map[string]string{}
	id := "session 0"
	for i := 1; seen[idgen.PermitMark(id)] == ""; i++ { // a hundred thousand are about enough
		seen[idgen.PermitMark(id)], id = id, fmt.Sprint("session ", i)
	}
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		for _, id := range []string{seen[idgen.PermitMark(id)], id} {
			session, err := rlock.Dial(context.Background(), s.Option(), rlock.Config{ID: id, Label: "label of " + id})
			must(t, err)
			t.Cleanup(func() { must(t, session.Close()) })
			_, _, err = semaphore.New(session, "x", 20).Acquire(within(t), 1)
			must(t, err)
		}
		all := decode[lock](newCLI(t, s), "show", "x").Owners
		if len(all) != 2 || all[0].Process != nil || all[1].Process != nil {
			t.Errorf("the owners are %+v", all)
		}
	})
}

// force gives the permits of one owner back, and lets the next one in; other owners keep theirs.
func TestForcePermits(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		x := semaphore.New(dialAs(t, s, "web-3:4711"), "x", 4)
		_, stays, err := x.Acquire(within(t), 1)
		must(t, err)
		_, goes, err := x.Acquire(within(t), 2)
		must(t, err)
		const java = "00112233445566778899aabbccddeeff"
		raw, err := hex.DecodeString(java)
		must(t, err)
		must(t, s.Do(t, "ZADD", "{x}:timeout", fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()), string(raw)).Error())
		must(t, s.Do(t, "DECRBY", "x", "1").Error())
		for _, bad := range [][]string{{"x"}, {"locked", "--owner", java}} {
			_, h, err := rlock.New(dial(t, s), "locked").TryLock(within(t))
			must(t, err)
			if r := c.want(64, append([]string{"force"}, bad...)...); !strings.Contains(r.err, "--owner") {
				t.Errorf("force %s says %q", bad, r.err)
			}
			must(t, h.Unlock())
		}
		for _, none := range [][]string{{"x", "--owner", strings.Repeat("0f", 16)}, {"free", "--owner", java}} {
			c.want(1, append([]string{"force"}, none...)...)
		}
		next := make(chan error, 1)
		inBackground(t, func(ctx context.Context) error {
			_, _, err := semaphore.New(dial(t, s), "x", 4).Acquire(ctx, 3)
			next <- err
			return err
		})
		eventually(t, "a waiter in the line", func() bool { return decode[lock](c, "show", "x").Line > 0 })
		if r := c.want(0, "force", "x", "--owner", goes.IDs()[0][:24]); r.out != "x was taken from web-3:4711\n" {
			t.Errorf("force says %q", r.out)
		}
		if r := c.want(0, "force", "x", "--owner", java); r.out != "x was taken from "+java+"\n" {
			t.Errorf("force says %q", r.out)
		}
		select {
		case err := <-next:
			must(t, err)
		case <-time.After(patience / 3):
			t.Fatal("the next one is not let in")
		}
		if err := goes.Release(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Release after force: %v", err)
		}
		must(t, stays.Release())
	})
}
