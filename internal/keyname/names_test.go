package keyname_test

import (
	"testing"

	"relock/internal/keyname"
)

func TestNamesOfALock(t *testing.T) {
	space := &keyname.Space{Prefix: "app:", Publish: "PUBLISH"}
	byName, byKey := space.Names("x"), space.NamesOf("app:x")
	for _, n := range []*keyname.Names{&byName, &byKey} {
		if n.Name() != "x" || n.Key() != "app:x" || len(n.Keys()) != 1 || n.Keys()[0] != "app:x" {
			t.Errorf("name %q, key %q, keys %q", n.Name(), n.Key(), n.Keys())
		}
		if n.Prefixed("p") != "p:{app:x}" || n.Suffixed("s") != "{app:x}:s" || n.Publish() != "PUBLISH" {
			t.Errorf("%q, %q, %q", n.Prefixed("p"), n.Suffixed("s"), n.Publish())
		}
	}
}

// Names are built as the deployment needs it: an odd name has a tag of its own in a Cluster only.
func TestNamesInACluster(t *testing.T) {
	for _, c := range []struct {
		space  keyname.Space
		tagged bool
		counts string
	}{
		{keyname.Space{Publish: "PUBLISH"}, false, "1"},
		{keyname.Space{Cluster: true, Publish: "PUBLISH"}, true, "0"},
		{keyname.Space{Cluster: true, Publish: "SPUBLISH"}, true, "1"},
	} {
		n := c.space.Names("a{b")
		if tagged := n.Prefixed("p") != "p:a{b"; tagged != c.tagged || n.CountsReceivers() != c.counts {
			t.Errorf("%+v: %q, counts %v", c.space, n.Prefixed("p"), n.CountsReceivers())
		}
		if c.space.Cluster && keyname.Slot(n.Prefixed("p")) != keyname.Slot(n.Key()) {
			t.Errorf("%q is not in the slot of %q", n.Prefixed("p"), n.Key())
		}
	}
}

func TestNamesOfNoSession(t *testing.T) {
	var none *keyname.Space
	n := none.Names("x")
	if n.Name() != "x" || n.Key() != "x" || n.Prefixed("p") != "p:{x}" {
		t.Errorf("%q, %q, %q", n.Name(), n.Key(), n.Prefixed("p"))
	}
}
