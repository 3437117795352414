package mutex_test

import (
	"fmt"
	"testing"
	"time"

	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/mutex"
	"relock/internal/script"
)

// A command names a helper key only if the claim may have made it: in a Cluster a second
// key can be in a slot that is moving. The arguments are those that the scripts' headers
// tell of.
func TestCommandsNameTheKeysThatTheyNeed(t *testing.T) {
	p, fenced := mutex.New(names("x"), mutex.Fencing{}), mutex.New(names("x"), mutex.Fencing{Fenced: true})
	ends := mutex.New(names("x"), mutex.Fencing{Fenced: true, Ends: time.Minute})
	const d = 1500 * time.Millisecond
	const head = "g0001250005000000036"
	for _, c := range []struct {
		what string
		cmd  script.Command
		keys string
		args string
	}{
		{"the first hold", p.Acquire(&kind.Op{Owner: "o", Lease: d}), "[x]", "[o 1500]"},
		{"the first hold, fenced", fenced.Acquire(&kind.Op{Owner: "o", Lease: d, Request: kind.Request{Tokens: 8}}), "[x redisson_lock_token:{x}]", "[o 1500  8 0 ]"},
		{"a nested hold", p.Acquire(&kind.Op{Owner: "o", Lease: d, ID: "i", Known: kind.Known{Held: 2}}), "[x relock_holds:{x}]", "[o 1500  0 2 i]"},
		{"a nested hold that has a token", fenced.Acquire(&kind.Op{Owner: "o", Lease: d, ID: "i", Known: kind.Known{Held: 1}}), "[x relock_holds:{x}]", "[o 1500  0 1 i]"},
		{"a nested hold that needs one", fenced.Acquire(&kind.Op{Owner: "o", Lease: d, ID: "i", Request: kind.Request{Tokens: 1}, Known: kind.Known{Held: 1}}), "[x relock_holds:{x} redisson_lock_token:{x}]", "[o 1500  1 1 i]"},
		{"the first hold, whose token ends", ends.Acquire(&kind.Op{Owner: "o", Lease: d, Request: kind.Request{Tokens: 8}}), "[x redisson_lock_token:{x}]", "[o 1500  8 0  60000]"},
		{"a nested hold that has a token that ends", ends.Acquire(&kind.Op{Owner: "o", Lease: d, ID: "i", Known: kind.Known{Held: 1}}), "[x relock_holds:{x} redisson_lock_token:{x}]", "[o 1500  0 1 i 60000]"},
		{"the first hold of a waiter", p.Acquire(&kind.Op{Owner: "o", Lease: d, Line: kind.Line{Head: "h"}}), "[x relock_line1:{x}]", "[o 1500 h]"},
		{"a waiter that stands in the line", p.Acquire(&kind.Op{Owner: "o", Lease: d, Line: kind.Line{Head: "h", Again: true, Waiting: 3}}), "[x relock_line1:{x}]", "[o 1500 h 0 0   1 0 redisson_lock__channel:{x} PUBLISH 1 relock_session: 3]"},
		{"a waiter that listens", p.Acquire(&kind.Op{Owner: "o", Lease: d, Line: kind.Line{Head: "h", Listens: true}}), "[x relock_line1:{x}]", "[o 1500 h 0 0   0 1 redisson_lock__channel:{x} PUBLISH 1 relock_session: 0]"},
		{"a waiter, fenced", fenced.Acquire(&kind.Op{Owner: "o", Lease: d, Request: kind.Request{Tokens: 8}, Line: kind.Line{Head: "h"}}), "[x relock_line1:{x} redisson_lock_token:{x}]", "[o 1500 h 8 0 ]"},
		{"a waiter whose token ends", ends.Acquire(&kind.Op{Owner: "o", Lease: d, Request: kind.Request{Tokens: 8}, Line: kind.Line{Head: "h", Again: true}}), "[x relock_line1:{x} redisson_lock_token:{x}]", "[o 1500 h 8 0  60000 1 0 redisson_lock__channel:{x} PUBLISH 1 relock_session: 0]"},
		{"a named waiter", p.Acquire(&kind.Op{Owner: "o", Lease: d, ID: "i", Line: kind.Line{Head: "h"}}), "[x relock_line1:{x} relock_holds:{x}]", "[o 1500 h 0 0 i]"},
		{"release of all", p.Release(&kind.Op{Owner: "o", All: true}), "[x]", "[o redisson_lock__channel:{x} PUBLISH 1 ]"},
		{"release of all, with ids", p.Release(&kind.Op{Owner: "o", All: true, ByIDs: true, Ending: kind.Ending{Ends: []string{"i"}}}), "[x relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1  1 0   0 0]"},
		{"release of all, beside a line", p.Release(&kind.Op{Owner: "o", All: true, Line: kind.Line{Named: true}}), "[x relock_line1:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1 relock_session:]"},
		{"release of all, fenced, beside a line", fenced.Release(&kind.Op{Owner: "o", All: true, Line: kind.Line{Named: true}}), "[x relock_line1:{x} redisson_lock_token:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1 relock_session: 0 1   0 0]"},
		{"release of all, fenced, without a line", fenced.Release(&kind.Op{Owner: "o", All: true}), "[x]", "[o redisson_lock__channel:{x} PUBLISH 1 ]"},
		{"release that enters anew", p.Release(&kind.Op{Owner: "o", All: true, Line: kind.Line{Named: true, Enter: "e", Listens: true, Waiting: 2}}), "[x relock_line1:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1 relock_session: 0 0  e 1 2]"},
		{"release of one, beside a line", p.Release(&kind.Op{Owner: "o", Private: true, ByIDs: true, Ending: kind.Ending{Ends: []string{"i"}, Keep: d}, Line: kind.Line{Named: true}}), "[x relock_line1:{x} relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1 relock_session: 1 0   0 0   1500 1 1 i]"},
		{"an entry that nobody wants", p.Dismiss(names("x"), head, "o", true), "[x relock_line1:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1 relock_session: 0 0 " + head + "  0 0]"},
		{"an entry of a named owner that nobody wants", p.Dismiss(names("x"), "n"+head[1:], "o", false), "[x relock_line1:{x} relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1 relock_session: 1 0 n" + head[1:] + "  0 0   0 0 0]"},
		{"release of one", p.Release(&kind.Op{Owner: "o", Private: true, ByIDs: true, Ending: kind.Ending{Ends: []string{"i"}, Keep: d}, Known: kind.Known{Held: 1}}), "[x relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1  1 0   0 0   1500 1 1 i]"},
		{"release of a named owner", p.Release(&kind.Op{Owner: "o", ByIDs: true, Ending: kind.Ending{Ends: []string{"i"}, Keep: d}, Known: kind.Known{Held: 1, IDs: []string{"j"}}}), "[x relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1  1 0   0 0   1500 0 1 i j]"},
		{"a question who holds it", p.ForceUnlock(new(kind.Force)), "[x relock_line1:{x}]", "[redisson_lock__channel:{x} PUBLISH relock_session: 1 0 0]"},
		{"a forced unlock", p.ForceUnlock(&kind.Force{Owners: []string{"o", "i"}, ID: "r", Remembered: d}), "[x relock_line1:{x} relock_forced:{x}:r]", "[redisson_lock__channel:{x} PUBLISH relock_session: 1 0 1500 o i]"},
		{"extension", p.Extend(&kind.Op{Owner: "o", Private: true, Lease: d, ID: "e"}), "[x relock_holds:{x}]", "[o 1500 1 0 e 0 0]"},
		{"extension that voids others", p.Extend(&kind.Op{Owner: "o", Private: true, Lease: d, ID: "e", Move: kind.Move{Void: []string{"c", "d"}}}), "[x relock_holds:{x}]", "[o 1500 1 0 e 2 0 c d]"},
		{"extension while a slot moves", p.Extend(&kind.Op{Owner: "o", Private: true, Lease: d, Move: kind.Move{Away: true}}), "[x]", "[o 1500 1 1  0 0]"},
		{"extension of a named owner", p.Extend(&kind.Op{Owner: "o", ByIDs: true, Lease: d, ID: "e", Known: kind.Known{IDs: []string{"i", "j"}}}), "[x relock_holds:{x}]", "[o 1500 0 0 e 0 0 i j]"},
		{"extension with a token", ends.Extend(&kind.Op{Owner: "o", Private: true, Lease: d, Move: kind.Move{Away: true}}), "[x redisson_lock_token:{x}]", "[o 1500 1 1  0 60000]"},
		{"extension with ids and a token", ends.Extend(&kind.Op{Owner: "o", Private: true, Lease: d, ID: "e"}), "[x relock_holds:{x} redisson_lock_token:{x}]", "[o 1500 1 0 e 0 60000]"},
		{"extension with a token while a slot moves", ends.Extend(&kind.Op{Owner: "o", Private: true, FewestKeys: true, Lease: d, Move: kind.Move{Away: true}}), "[x]", "[o 1500 1 1  0 0]"},
	} {
		if keys, args := fmt.Sprint(c.cmd.Keys), fmt.Sprint(c.cmd.Args); keys != c.keys || args != c.args {
			t.Errorf("%s: keys %s, args %s\nwant keys %s, args %s", c.what, keys, args, c.keys, c.args)
		}
	}
}

// A renewal does too, and of these no more than what cannot be left out while a slot moves.
func TestRenewalsNameTheKeysThatTheyNeed(t *testing.T) {
	p, ends := mutex.New(names("x"), mutex.Fencing{}), mutex.New(names("x"), mutex.Fencing{Fenced: true, Ends: time.Minute})
	for _, c := range []struct {
		p            *mutex.Primitive
		byIDs, alone bool
		want         string
	}{
		{p, false, false, "[x] [o]"},
		{p, true, false, "[x relock_holds:{x}] [o ]"},
		{p, true, true, "[x] [o]"},
		{ends, false, false, "[x redisson_lock_token:{x}] [=o 60000]"},
		{ends, true, false, "[x relock_holds:{x} redisson_lock_token:{x}] [=o  60000]"},
		{ends, true, true, "[x] [=o]"},
	} {
		cmd := c.p.Renew(&kind.Op{Owner: "o", ByIDs: c.byIDs, FewestKeys: c.alone, Known: kind.Known{Held: 2}})
		if got := fmt.Sprint(cmd.Keys, " ", cmd.Args); got != c.want {
			t.Errorf("renewal: %s, want %s", got, c.want)
		}
	}
}

// Where line and lock are not on one node, or the user may not use the line, a command is sent again
// without it. A release of a sharded deployment then tells every node: who cannot enter the line listens there.
func TestCommandsGoWithoutTheLine(t *testing.T) {
	p, fenced := mutex.New(names("x"), mutex.Fencing{}), mutex.New(names("x"), mutex.Fencing{Fenced: true})
	sharded := mutex.New((&keyname.Space{Publishing: keyname.Publishes(true, true)}).Names("x"), mutex.Fencing{})
	const d = 1500 * time.Millisecond
	inLine := kind.Line{Head: "h", Again: true}
	beside := kind.Line{Named: true, Enter: "e"}
	for _, c := range []struct {
		what string
		cmd  script.Command
		keys string
		args string
	}{
		{"a waiter", p.Acquire(&kind.Op{Owner: "o", Lease: d, Line: inLine}), "[x]", "[o 1500  0 0   1 0 redisson_lock__channel:{x} PUBLISH 1 relock_session: 0]"},
		{"a waiter, fenced", fenced.Acquire(&kind.Op{Owner: "o", Lease: d, Request: kind.Request{Tokens: 2}, Line: inLine}), "[x redisson_lock_token:{x}]", "[o 1500  2 0   1 0 redisson_lock__channel:{x} PUBLISH 1 relock_session: 0]"},
		{"a named waiter", p.Acquire(&kind.Op{Owner: "o", Lease: d, ID: "i", Line: inLine}), "[x relock_holds:{x}]", "[o 1500  0 0 i  1 0 redisson_lock__channel:{x} PUBLISH 1 relock_session: 0]"},
		{"a release", p.Release(&kind.Op{Owner: "o", All: true, Line: kind.Line{Named: true}}), "[x]", "[o redisson_lock__channel:{x} PUBLISH 1 ]"},
		{"a release that enters anew", p.Release(&kind.Op{Owner: "o", All: true, Line: beside}), "[x]", "[o redisson_lock__channel:{x} PUBLISH 1  0 0  e 0 0]"},
		{"a release, fenced", fenced.Release(&kind.Op{Owner: "o", All: true, Line: beside}), "[x]", "[o redisson_lock__channel:{x} PUBLISH 1  0 0  e 0 0]"},
		{"a release by id, fenced", fenced.Release(&kind.Op{Owner: "o", ByIDs: true, Ending: kind.Ending{Ends: []string{"i"}}, Line: beside}), "[x relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1  1 0  e 0 0   0 0 1 i]"},
		{"a sharded release", sharded.Release(&kind.Op{Owner: "o", All: true, Line: kind.Line{Named: true}}), "[x]", "[o redisson_lock__channel:{x} SPUBLISH b ]"},
	} {
		if c.cmd.Fewer == nil {
			t.Errorf("%s cannot go without the line", c.what)
			continue
		}
		before := fmt.Sprint(c.cmd.Keys, c.cmd.Args)
		fewer := c.cmd.Fewer(c.cmd)
		if keys, args := fmt.Sprint(fewer.Keys), fmt.Sprint(fewer.Args); keys != c.keys || args != c.args || fewer.Fewer != nil {
			t.Errorf("%s: keys %s, args %s\nwant keys %s, args %s", c.what, keys, args, c.keys, c.args)
		}
		if after := fmt.Sprint(c.cmd.Keys, c.cmd.Args); after != before {
			t.Errorf("%s: the command became %s, and was %s", c.what, after, before)
		}
	}
	for what, cmd := range map[string]script.Command{
		"a TryLock": p.Acquire(&kind.Op{Owner: "o", Lease: d}),
		"a release": p.Release(&kind.Op{Owner: "o", All: true}),
	} {
		if cmd.Fewer != nil {
			t.Errorf("%s names no line, and can go without", what)
		}
	}
}

// While a slot moves a forced unlock goes without its mark, so that the line is still served; and then without
// the line, if that is not there either.
func TestAForcedUnlockGoesWithFewerKeys(t *testing.T) {
	cmd := mutex.New(names("x"), mutex.Fencing{}).ForceUnlock(&kind.Force{Owners: []string{"o"}, ID: "r", Remembered: time.Minute})
	for _, want := range []string{"[x relock_line1:{x} relock_forced:{x}:r] 60000", "[x relock_line1:{x}] 0", "[x] 0"} {
		if got := fmt.Sprint(cmd.Keys, " ", cmd.Args[5]); got != want || cmd.Args[6] != "o" {
			t.Errorf("keys and TTL %s, args %q; want %s", got, cmd.Args, want)
		}
		if cmd.Fewer != nil {
			cmd = cmd.Fewer(cmd)
		}
	}
}

// names are those of a lock in a deployment of one server.
func names(name string) keyname.Names {
	return (&keyname.Space{Publishing: keyname.Publishes(false, false)}).Names(name)
}

// A session holds a great many locks, and most of them are taken and released only.
func TestCommandsAreCheap(t *testing.T) {
	p := mutex.New(names("x"), mutex.Fencing{})
	op := &kind.Op{Owner: "o", Lease: kind.Memory / 2, All: true}
	for what, f := range map[string]func(){"Acquire": func() { p.Acquire(op) }, "Release": func() { p.Release(op) }} {
		if n := testing.AllocsPerRun(100, f); n > 1 {
			t.Errorf("%s allocates %v times, want only the arguments", what, n)
		}
	}
}
