package account_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"relock/internal/account"
	"relock/internal/holds"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/redis"
	"relock/internal/script"
)

// A lock is a primitive whose release commands say in words what they were made of.
type lock struct{ kind kind.Kind }

func (p *lock) Kind() *kind.Kind              { return &p.kind }
func (*lock) Names() *keyname.Names           { return nil }
func (*lock) Channel() string                 { return "" }
func (*lock) Acquire(*kind.Op) script.Command { return script.Command{} }
func (p *lock) Release(op *kind.Op) script.Command {
	words := fmt.Sprintf("side %d of %s ends %v", p.kind.Side, op.Owner, op.Ends)
	for i, said := range []bool{op.All, op.Private, op.ByIDs} {
		if said {
			words += [...]string{" all", " private", " byIDs"}[i]
		}
	}
	if !op.All {
		words = fmt.Sprintf("%s, stay %d%v %d%v for %v", words, op.Held, op.IDs, op.Other, op.OtherIDs, op.Keep)
	}
	return script.Command{Args: []string{words}}
}

var (
	read  = &lock{kind.Kind{Side: 0}}
	write = &lock{kind.Kind{Side: 1}}
	byID  = &lock{kind.Kind{}}
)

func releases(m *account.Account, p *lock) (said []string) {
	for _, cmd := range m.Releases(nil, p, kind.Op{Owner: "o"}) {
		word := "lost if not there"
		if !cmd.Known {
			word = "may be gone"
		}
		said = append(said, fmt.Sprint(cmd.Args[0], ": ", word))
	}
	return said
}

func nest(m *account.Account, first, p *lock, id string) (op kind.Op, newSide bool) {
	op = kind.Op{ID: id}
	newSide = m.Nest(first.Kind(), p, &op)
	return op, newSide
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// A private owner with one hold has no account: its hold counts, and one command ends it.
func TestNoAccount(t *testing.T) {
	var none *account.Account
	same(t, "counted", [2]int{none.Counted(&write.kind, 0), none.Counted(&write.kind, 1)}, [2]int{0, 1})
	same(t, "sides", none.Sides(write), [2]kind.Primitive{nil, write})
	same(t, "first id", none.FirstID(&write.kind), "")
	same(t, "released by", releases(none, write), []string{"side 1 of o ends [] all private: lost if not there"})
	if none.ByIDs() || none.MayShorten() {
		t.Error("there are ids, or late commands")
	}
}

// Nested holds of a private owner count beside its first, which has no id, on the side that they take.
func TestNestedHoldsCount(t *testing.T) {
	m := account.New(write, "")
	op, newSide := nest(m, write, write, "a")
	same(t, "a nested hold", []any{op.Held, op.Other, op.ByIDs, newSide}, []any{1, 0, true, false})
	before := m.Changes
	op, newSide = nest(m, write, read, "b")
	same(t, "one on the other side", []any{op.Held, op.Other, newSide}, []any{0, 2, true})
	if m.Changes == before {
		t.Error("a new side is no change: a renewal that was sent before it would be believed")
	}
	if _, newSide = nest(m, write, read, "c"); newSide {
		t.Error("the second hold of a side takes it for the first time")
	}
	same(t, "counted", [2]int{m.Counted(&write.kind, 0), m.Counted(&write.kind, 1)}, [2]int{2, 2})
	same(t, "sides", m.Sides(write), [2]kind.Primitive{read, write})
}

// The holds of a named owner are told apart: those of its callers stay, and a surplus is of the others.
func TestSurplusOfANamedOwner(t *testing.T) {
	m := account.New(read, "o")
	m.Begin(&read.kind, "a")
	first, second := &holds.Hold{}, &holds.Hold{}
	m.Keep(first, "a")
	nest(m, read, read, "b")
	nest(m, read, read, "c")
	m.Keep(second, "c")
	same(t, "what nobody holds", m.Surplus(&read.kind, 0, 2), []string{"b"})
	same(t, "nothing more", m.Surplus(&read.kind, 0, 2), []string(nil))
	first.Done = true
	cmd := m.Partial(&read.kind, 0, m.Surplus(&read.kind, 0, 1), time.Second, kind.Op{Owner: "o"})
	same(t, "the command", cmd.Args[0], "side 0 of o ends [a] byIDs, stay 1[c] 0[] for 1s")
	same(t, "the last release names also what is not confirmed to have ended", releases(m, read),
		[]string{"side 0 of o ends [c b a] byIDs, stay 0[] 0[] for 0s: lost if not there"})
	m.Ended(0, []string{"a", "b"})
	same(t, "when it is", releases(m, read), []string{"side 0 of o ends [c] byIDs, stay 0[] 0[] for 0s: lost if not there"})
}

// Those of a private owner are alike: any of the ids can end, and the first hold, which has none, last.
func TestSurplusOfAPrivateOwner(t *testing.T) {
	m := account.New(read, "")
	nest(m, read, read, "a")
	nest(m, read, read, "b")
	same(t, "all are needed", m.Surplus(&read.kind, 0, 3), []string(nil))
	same(t, "one is needed", m.Surplus(&read.kind, 0, 1), []string{"a", "b"})
	same(t, "none is needed: the release ends the first", m.Surplus(&read.kind, 0, 0), []string(nil))
}

// A side of which nothing is known to stand is released only if something may come late.
func TestReleasesOfWhatMayComeLate(t *testing.T) {
	m := account.New(byID, "")
	same(t, "the first hold has no id", m.FirstID(&byID.kind), "")
	op := kind.Op{ID: "b", Request: kind.Request{First: "a"}}
	m.Nest(&byID.kind, write, &op)
	same(t, "until there is another one", []any{m.FirstID(&byID.kind), m.Counted(&byID.kind, 0), op.First}, []any{"a", 1, "a"})
	op = kind.Op{ID: "c", Request: kind.Request{First: "x"}}
	m.Nest(&byID.kind, write, &op)
	same(t, "which names it again", op.First, "a")
	m.Ended(1, []string{"c"})
	m.Ended(1, []string{"b"})
	if cmds := releases(m, byID); len(cmds) != 1 {
		t.Errorf("a side without holds is released: %q", cmds)
	}
	m.MarkUnresolved(1)
	if cmds := releases(m, byID); len(cmds) != 2 || cmds[1][len(cmds[1])-len("may be gone"):] != "may be gone" {
		t.Errorf("a side on which a hold may come about: %q", cmds)
	}
	named := account.New(read, "o")
	named.Begin(&read.kind, "a")
	named.Ended(0, []string{"a"})
	same(t, "a named owner of whom nothing stands", releases(named, read), []string(nil))
	nest(named, read, read, "b")
	same(t, "an unresolved hold has a command of its own", named.EndUnresolved(0, "b"), []string{"b"})
	same(t, "and counts no more", named.Counted(&read.kind, 0), 0)
	same(t, "the last release names it", releases(named, read),
		[]string{"side 0 of o ends [b] byIDs, stay 0[] 0[] for 0s: may be gone"})
}

// Redis is told to ignore what may bring the end of the lock closer, until it has taken note of that.
func TestLateCommandsAreVoided(t *testing.T) {
	m := account.New(read, "")
	extend := func() kind.Op {
		op := kind.Op{ID: "x"}
		m.Extension(&read.kind, 0, &op)
		return op
	}
	if op := extend(); op.ByIDs || op.Void != nil || op.Held != 1 {
		t.Errorf("an extension with nothing before it: %+v", op)
	}
	if !m.Busy {
		t.Error("it is not awaited")
	}
	m.Extended(&kind.Op{ID: "x"}, &redis.Extended{Late: true})
	m.Shortening([]string{"y", "z"})
	op := extend()
	same(t, "to be ignored", op.Void, []string{"x", "y"})
	if !op.ByIDs || !m.MayShorten() {
		t.Error("the key of the ids is not named")
	}
	m.Extended(&op, &redis.Extended{})
	if !m.MayShorten() {
		t.Error("an extension that was not answered counts")
	}
	m.Extended(&op, &redis.Extended{Voided: true})
	if m.MayShorten() {
		t.Error("what Redis ignores is still to be ignored")
	}
}

// The claim surely has as many tokens as the least that it ever asked for, the highest of all.
func TestTokens(t *testing.T) {
	var m account.Tokens
	if m.HasToken() || m.Draw() != 0 {
		t.Error("there are tokens before any were reserved")
	}
	m.Reserving(5)
	m.Reserving(2)
	m.Reserving(9)
	m.Reserved(0)
	if m.HasToken() {
		t.Error("no token is one")
	}
	m.Reserved(40)
	same(t, "drawn", []int64{m.Draw(), m.Draw(), m.Draw()}, []int64{39, 40, 0})
	m.Exactly(1)
	m.Reserved(41)
	same(t, "drawn", []int64{m.Draw(), m.Draw()}, []int64{41, 0})
}

// Those who wait for the command that is under way look again when it is done.
func TestTurn(t *testing.T) {
	m := account.New(read, "o")
	m.Begin(&read.kind, "a")
	if !m.Busy || m.Awaited() {
		t.Error("the first command of a named owner is not under way, or is awaited by others")
	}
	free := m.Freed()
	if !m.Awaited() || m.Freed() != free {
		t.Error("two who wait do not wait for the same")
	}
	m.Wake()
	<-free
	if free = m.Freed(); !m.Busy {
		t.Error("to call up ends the command")
	}
	m.Answered()
	<-free
	if m.Busy || m.Awaited() {
		t.Error("it is not over")
	}
}

// A claim stands as long as the contexts of one of its sections are being cancelled. One without an account
// has no other section that asks.
func TestCancels(t *testing.T) {
	none, m := (*account.Account)(nil), account.New(read, "")
	none.Cancel(1)
	if none.Cancels() || m.Cancels() {
		t.Error("contexts are being cancelled of a new one, or of none")
	}
	m.Cancel(1)
	m.Cancel(1)
	m.Cancel(-1)
	if !m.Cancels() {
		t.Error("the contexts of two sections were to be cancelled, and of one they have been")
	}
	if m.Cancel(-1); m.Cancels() {
		t.Error("both have been")
	}
}
