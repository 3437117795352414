package deadlock

import (
	"math"
	"reflect"
	"relock/internal/inbox"
	"strings"
	"testing"
)

func step(id, key string, holder Claim) Step {
	holder.Key = key
	return Step{Wait{ID: id, Session: "s" + id, Key: key, Side: "read", Label: "host:" + id}, holder}
}

// What is encoded is parsed to the same, whatever bytes the names have.
func TestMessagesKeepTheirBytes(t *testing.T) {
	steps := Cycle{step("1", "a\x00\xff:3:{", Claim{"x:y", math.MaxUint64, ""}), step("2", "", Claim{"", 0, ""})}
	for _, m := range []message{
		{kind: seek, nonce: math.MaxUint64, steps: steps},
		{kind: hint, steps: steps[:1]},
		{kind: confirm, nonce: 1, at: 2, steps: steps},
	} {
		text, ok := m.encode()
		if !ok {
			t.Fatal("too long")
		}
		if got, ok := parse(text); !ok || !reflect.DeepEqual(got, m) {
			t.Errorf("%q: %+v, %v; want %+v", text, got, ok, m)
		}
	}
	long := message{kind: seek, steps: Cycle{step("1", strings.Repeat("x", maxMessage), Claim{})}}
	if text, ok := long.encode(); ok {
		t.Error("a message that is too long is sent")
	} else if _, ok := parse(text); ok {
		t.Error("a message that is too long is taken")
	}
}

func TestBadMessages(t *testing.T) {
	good := message{kind: confirm, nonce: 7, at: 1, steps: Cycle{step("1", "a", Claim{"s", 1, ""})}}
	text, _ := good.encode()
	for cut := range len(text) {
		if m, ok := parse(text[:cut]); ok {
			t.Errorf("%q is taken for %+v", text[:cut], m)
		}
	}
	for _, m := range []message{
		{kind: confirm, at: 0, steps: good.steps}, {kind: confirm, at: 2, steps: good.steps}, {kind: 'x', steps: good.steps},
		{kind: seek, at: 1, steps: good.steps}, {kind: seek}, {kind: seek, steps: make(Cycle, maxSteps+1)}, {kind: hint, steps: make(Cycle, 2)},
	} {
		if text, _ := m.encode(); text != "" {
			if _, ok := parse(text); ok {
				t.Errorf("%q is taken", text)
			}
		}
	}
	for _, bad := range []string{"", "grant:1", inbox.Deadlock, inbox.Deadlock + "1:s", inbox.Deadlock + "-1:s", inbox.Deadlock + "1:s1:x1:0", inbox.Deadlock + "99999999999999999999:s"} {
		if m, ok := parse(bad); ok {
			t.Errorf("%q is taken for %+v", bad, m)
		}
	}
}

func FuzzParse(f *testing.F) {
	m := message{kind: confirm, nonce: 7, at: 1, steps: Cycle{step("1", "a", Claim{"s", 1, ""})}}
	text, _ := m.encode()
	f.Add(text)
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := parse(text)
		if !ok {
			return
		}
		again, ok := m.encode()
		if !ok {
			return
		}
		if same, ok := parse(again); !ok || !reflect.DeepEqual(same, m) {
			t.Errorf("%q: %+v, %v", again, same, ok)
		}
	})
}

func TestCycleText(t *testing.T) {
	c := Cycle{step("1", "a", Claim{"s2", 5, ""}), step("2", "b\n", Claim{"s1", 7, ""})}
	if got, want := c.String(), `"a" (held by "s2:5", "host:2") waits for "b\n" (held by "s1:7", "host:1") waits for "a"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	long := Cycle{step("1", strings.Repeat("x", 1000), Claim{"s", 1, ""})}
	if got := long.String(); len(got) > 400 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
