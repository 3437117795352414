package mutex_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/engine"
	"relock/internal/mutex"
	"relock/internal/script"
	"relock/internal/test/redistest"
)

// A command names a helper key only if the claim may have made it: in a Cluster a second
// key can be in a slot that is moving. The arguments are those that the scripts' headers
// tell of.
func TestCommandsNameTheKeysThatTheyNeed(t *testing.T) {
	names, err := session(t).Names("x")
	if err != nil {
		t.Fatal(err)
	}
	p, fenced := mutex.New(names, mutex.Fencing{}), mutex.New(names, mutex.Fencing{Fenced: true})
	ends := mutex.New(names, mutex.Fencing{Fenced: true, Ends: time.Minute})
	const d = 1500 * time.Millisecond
	for _, c := range []struct {
		what string
		cmd  script.Command
		keys string
		args string
	}{
		{"the first hold", p.Acquire(&engine.Op{Owner: "o", Lease: d}), "[x]", "[o 1500 0 0]"},
		{"the first hold, fenced", fenced.Acquire(&engine.Op{Owner: "o", Lease: d, Tokens: 8}), "[x redisson_lock_token:{x}]", "[o 1500 8 0]"},
		{"a nested hold", p.Acquire(&engine.Op{Owner: "o", Lease: d, ID: "i", Known: engine.Known{Held: 2}}), "[x relock_holds:{x}]", "[o 1500 0 2 i]"},
		{"a nested hold that has a token", fenced.Acquire(&engine.Op{Owner: "o", Lease: d, ID: "i", Known: engine.Known{Held: 1}}), "[x relock_holds:{x}]", "[o 1500 0 1 i]"},
		{"a nested hold that needs one", fenced.Acquire(&engine.Op{Owner: "o", Lease: d, ID: "i", Tokens: 1, Known: engine.Known{Held: 1}}), "[x relock_holds:{x} redisson_lock_token:{x}]", "[o 1500 1 1 i]"},
		{"the first hold, whose token ends", ends.Acquire(&engine.Op{Owner: "o", Lease: d, Tokens: 8}), "[x redisson_lock_token:{x}]", "[o 1500 8 0  60000]"},
		{"a nested hold that has a token that ends", ends.Acquire(&engine.Op{Owner: "o", Lease: d, ID: "i", Known: engine.Known{Held: 1}}), "[x relock_holds:{x} redisson_lock_token:{x}]", "[o 1500 0 1 i 60000]"},
		{"release of all", p.Release(&engine.Op{Owner: "o", All: true}), "[x]", "[o redisson_lock__channel:{x} PUBLISH 1]"},
		{"release of all, with ids", p.Release(&engine.Op{Owner: "o", All: true, ByIDs: true, Ends: []string{"i"}}), "[x relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1]"},
		{"release of one", p.Release(&engine.Op{Owner: "o", Private: true, ByIDs: true, Ends: []string{"i"}, Keep: d, Known: engine.Known{Held: 1}}), "[x relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1 1500 1 1 i]"},
		{"release of a named owner", p.Release(&engine.Op{Owner: "o", ByIDs: true, Ends: []string{"i"}, Keep: d, Known: engine.Known{Held: 1, IDs: []string{"j"}}}), "[x relock_holds:{x}]", "[o redisson_lock__channel:{x} PUBLISH 1 1500 0 1 i j]"},
		{"extension", p.Extend(&engine.Op{Owner: "o", Private: true, Lease: d, ID: "e"}), "[x relock_holds:{x}]", "[o 1500 1 0 e 0 0]"},
		{"extension that voids others", p.Extend(&engine.Op{Owner: "o", Private: true, Lease: d, ID: "e", Move: engine.Move{Void: []string{"c", "d"}}}), "[x relock_holds:{x}]", "[o 1500 1 0 e 2 0 c d]"},
		{"extension while a slot moves", p.Extend(&engine.Op{Owner: "o", Private: true, Lease: d, Move: engine.Move{Away: true}}), "[x]", "[o 1500 1 1  0 0]"},
		{"extension of a named owner", p.Extend(&engine.Op{Owner: "o", ByIDs: true, Lease: d, ID: "e", Known: engine.Known{IDs: []string{"i", "j"}}}), "[x relock_holds:{x}]", "[o 1500 0 0 e 0 0 i j]"},
		{"extension with a token", ends.Extend(&engine.Op{Owner: "o", Private: true, Lease: d, Move: engine.Move{Away: true}}), "[x redisson_lock_token:{x}]", "[o 1500 1 1  0 60000]"},
		{"extension with ids and a token", ends.Extend(&engine.Op{Owner: "o", Private: true, Lease: d, ID: "e"}), "[x relock_holds:{x} redisson_lock_token:{x}]", "[o 1500 1 0 e 0 60000]"},
		{"extension with a token while a slot moves", ends.Extend(&engine.Op{Owner: "o", Private: true, Alone: true, Lease: d, Move: engine.Move{Away: true}}), "[x]", "[o 1500 1 1  0 0]"},
	} {
		if keys, args := fmt.Sprint(c.cmd.Keys), fmt.Sprint(c.cmd.Args); keys != c.keys || args != c.args {
			t.Errorf("%s: keys %s, args %s\nwant keys %s, args %s", c.what, keys, args, c.keys, c.args)
		}
	}
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
		keys, args := c.p.RenewArgs(&engine.Op{Owner: "o", ByIDs: c.byIDs, Alone: c.alone, Known: engine.Known{Held: 2}})
		if got := fmt.Sprint(keys, " ", args); got != c.want {
			t.Errorf("renewal: %s, want %s", got, c.want)
		}
	}
}

func session(t *testing.T) *engine.Session {
	t.Helper()
	s, err := engine.New(context.Background(), redistest.Mini(t).Client(t), engine.Config{}, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A session holds a great many locks, and most of them are taken and released only.
func TestCommandsAreCheap(t *testing.T) {
	names, err := session(t).Names("x")
	if err != nil {
		t.Fatal(err)
	}
	p := mutex.New(names, mutex.Fencing{})
	op := &engine.Op{Owner: "o", Lease: engine.Memory / 2, All: true}
	for what, f := range map[string]func(){"Acquire": func() { p.Acquire(op) }, "Release": func() { p.Release(op) }} {
		if n := testing.AllocsPerRun(100, f); n > 1 {
			t.Errorf("%s allocates %v times, want only the arguments", what, n)
		}
	}
}
