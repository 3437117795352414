package keyname_test

import (
	"testing"

	"relock/internal/keyname"
)

func TestNamesOfALock(t *testing.T) {
	space := &keyname.Space{Prefix: "app:", Publishing: keyname.Publishes(false, false)}
	byName, byKey := space.Names("x"), space.NamesOf("app:x")
	for _, n := range []*keyname.Names{&byName, &byKey} {
		if n.Name() != "x" || n.Key() != "app:x" || n.Keys[0] != "app:x" {
			t.Errorf("name %q, key %q, keys %q", n.Name(), n.Key(), n.Keys)
		}
		if n.Prefixed("p") != "p:{app:x}" || n.Suffixed("s") != "{app:x}:s" || n.Publish != "PUBLISH" {
			t.Errorf("%q, %q, %q", n.Prefixed("p"), n.Suffixed("s"), n.Publish)
		}
	}
}

// Names are built as the deployment needs it: an odd name has a tag of its own in a Cluster only.
func TestNamesInACluster(t *testing.T) {
	for _, c := range []struct {
		cluster, sharded bool
		tagged           bool
		publish, counts  string
	}{
		{false, false, false, "PUBLISH", "1"},
		{true, false, true, "PUBLISH", "0"},
		{true, true, true, "SPUBLISH", "1"},
	} {
		space := keyname.Space{Cluster: c.cluster, Publishing: keyname.Publishes(c.cluster, c.sharded)}
		n := space.Names("a{b")
		if tagged := n.Prefixed("p") != "p:a{b"; tagged != c.tagged || n.Publish != c.publish || n.Counts != c.counts {
			t.Errorf("%+v: %q, %s counts %s", c, n.Prefixed("p"), n.Publish, n.Counts)
		}
		if c.cluster && keyname.Slot(n.Prefixed("p")) != keyname.Slot(n.Key()) {
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
