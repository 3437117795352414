package main_test

import (
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A lock that its session may keep is said to be one, in its section and behind it, and no other is: not one without
// Keep, not a Redisson client's, not a named owner's.
func TestALockThatMayBeKept(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session, ctx := newCLI(t, s), dialAs(t, s, "web-3"), within(t)
		keep := rlock.Keep(10 * time.Second)
		_, h, err := rlock.New(session, "kept", keep).Lock(ctx)
		must(t, err)
		must(t, h.Unlock())
		_, _, err = rlock.New(session, "inside", keep).Lock(ctx)
		must(t, err)
		_, _, err = rwlock.New(session, "write", keep).Lock(ctx)
		must(t, err)
		_, _, err = rwlock.New(session, "read", keep).RLock(ctx)
		must(t, err)
		_, _, err = rlock.New(session, "plain").Lock(ctx)
		must(t, err)
		_, _, err = rlock.New(session, "named", keep).Lock(rlock.WithOwner(ctx, "order-17"))
		must(t, err)
		for _, cmd := range []string{"HSET java 3f2a1f3c-1f0e-4c6e-9a6a-5f1c2b7d8e90:40 1", "PEXPIRE java 30000"} {
			must(t, s.Do(t, strings.Fields(cmd)...).Error())
		}
		want := map[string]bool{"kept": true, "inside": true, "write": true, "read": false, "plain": false, "named": false, "java": false}
		listed := decode[[]lock](c, "ls", "--json")
		if len(listed) != len(want) {
			t.Errorf("ls has %d locks, want %d", len(listed), len(want))
		}
		for _, l := range listed {
			if len(l.Owners) != 1 || l.Owners[0].Kept != want[l.Name] {
				t.Errorf("ls: %s has %+v, want may_be_kept %v", l.Name, l.Owners, want[l.Name])
			}
		}
		for name, kept := range want {
			if l := decode[lock](c, "show", name, "--json"); len(l.Owners) != 1 || l.Owners[0].Kept != kept {
				t.Errorf("show: %s has %+v, want may_be_kept %v", name, l.Owners, kept)
			}
			if out := c.want(0, "show", name).out; strings.Contains(out, "(may be kept)") != kept {
				t.Errorf("show prints of %s: %s", name, out)
			}
		}
		for _, args := range [][]string{{"ls"}, {"top", "-n", "1", "--interval", "200ms", "*"}} {
			out := c.want(0, args...).out
			for line := range strings.Lines(out) {
				if name, _, _ := strings.Cut(line, " "); want[name] != strings.Contains(line, "web-3 (may be kept)") {
					t.Errorf("%s prints %s", args[0], line)
				}
			}
			if n := strings.Count(out, "may be kept"); n != 3 {
				t.Errorf("%s prints it of %d locks, want 3: %s", args[0], n, out)
			}
		}
	})
}
