package keyname

import (
	"strings"
	"testing"
)

// The examples of the Redis Cluster specification and of Redisson's own names.
func TestSlot(t *testing.T) {
	for key, want := range map[string]int{
		"123456789": 0x31C3, "foo": 12182, "{foo}bar": 12182, "x{foo}{bar}": 12182,
		"{}foo": Slot("{}foo"), "foo{{bar}}": Slot("{bar"),
	} {
		if got := Slot(key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
	if Slot("{}foo") == Slot("foo") {
		t.Error("an empty tag must hash the whole key")
	}
}

func TestNamesAreRedissons(t *testing.T) {
	for _, cluster := range []bool{false, true} {
		s := Style{Cluster: cluster}
		for _, c := range []struct{ got, want string }{
			{s.Prefix("redisson_lock__channel", "x"), "redisson_lock__channel:{x}"},
			{s.Prefix("redisson_lock__channel", "a{b}c"), "redisson_lock__channel:a{b}c"},
			{s.Suffix("x", "timeout"), "{x}:timeout"},
			{s.Suffix("a{b}c", "timeout"), "a{b}c:timeout"},
		} {
			if c.got != c.want {
				t.Errorf("cluster=%v: got %q, want %q", cluster, c.got, c.want)
			}
		}
	}
	// Names in braces have keys of their own where Redisson has none.
	for name, want := range map[string]string{"x": "relock_p:{x}", "{x}": "relock_p:{x}:", "{x}:": "relock_p:{x}::", "{x}:y": "relock_p:{x}:y", "y{x}": "relock_p:y{x}"} {
		if got := (Style{}).Prefix("relock_p", name); got != want {
			t.Errorf("Prefix(%q) = %q, want %q", name, got, want)
		}
	}
	// Where Java can use an odd name at all, outside a Cluster, we meet it there.
	for name, want := range map[string]string{"a}b": "p:{a}b}", "a{b": "p:a{b", "{}x": "p:{}x"} {
		if got := (Style{}).Prefix("p", name); got != want {
			t.Errorf("Prefix(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzOneSlotInCluster(f *testing.F) {
	for _, name := range []string{"x", "a{b}c", "a}b", "a{b", "{}x", "{", "}", "}{", "{{a}}", " ", "\x00\xff", strings.Repeat("k", 1024)} {
		f.Add(name)
	}
	s := Style{Cluster: true}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" {
			t.Skip("an empty name is refused before it gets here")
		}
		a, b := s.Prefix("redisson_lock__channel", name), s.Suffix(name, "timeout")
		if Slot(a) != Slot(name) || Slot(b) != Slot(name) {
			t.Errorf("%q: slots %d, %d, %d differ (%q, %q)", name, Slot(name), Slot(a), Slot(b), a, b)
		}
		if !strings.Contains(a, name) || !strings.Contains(b, name) {
			t.Errorf("%q is not part of %q and %q", name, a, b)
		}
	})
}
