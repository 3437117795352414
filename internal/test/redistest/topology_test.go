package redistest_test

import (
	"strconv"
	"testing"
	"time"

	"relock/internal/test/redistest"
)

func TestSlot(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{
		"":                     0,
		"123456789":            12739,
		"foo":                  12182,
		"{user1000}.following": redistest.Slot("user1000"),
		"foo{bar}{zap}":        redistest.Slot("bar"),
		"foo{{bar}}zap":        redistest.Slot("{bar"),
	} {
		if got := redistest.Slot(key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
	if redistest.Slot("foo{}{bar}") == redistest.Slot("bar") {
		t.Error("an empty tag must not count as one")
	}
}

func TestClusterMovesSlots(t *testing.T) {
	t.Parallel()
	cl := redistest.NewCluster(t)
	c := cl.Client(t)
	const tag = "{tag}"
	slot := redistest.Slot(tag)
	if n, err := cl.Node(cl.Addrs[0]).Do(t, "CLUSTER", "KEYSLOT", tag).AsInt64(); err != nil || int(n) != slot {
		t.Fatalf("Slot(%q) = %d, the server has %d, %v", tag, slot, n, err)
	}
	for i := range 250 {
		key := tag + strconv.Itoa(i)
		mustDo(t, c, "SET", key, key)
	}
	from := cl.SlotOwner(t, slot)
	var to string
	for _, addr := range cl.Addrs {
		if addr != from {
			to = addr
		}
	}
	cl.MigrateSlot(t, slot, to)
	cl.MigrateSlot(t, slot, to)
	if owner := cl.SlotOwner(t, slot); owner != to {
		t.Errorf("owner %s, want %s", owner, to)
	}
	for i := range 250 {
		key := tag + strconv.Itoa(i)
		if got := mustDo(t, c, "GET", key); got != key {
			t.Errorf("GET %s = %q", key, got)
		}
	}
	node := cl.NodeClient(t, to)
	if got := mustDo(t, node, "GET", tag+"7"); got != tag+"7" {
		t.Errorf("on the new owner: %q", got)
	}
	cl.KillNode(from)
	// A client that was redirected learns about the new owner when it gets to it.
	redistest.Eventually(t, 20*time.Second, "the client finds the key without the old owner", func() bool {
		got, err := c.Do(t.Context(), c.B().Get().Key(tag+"7").Build()).ToString()
		return err == nil && got == tag+"7"
	})
	if keys := cl.Node(to).Keys(t); len(keys) != 250 {
		t.Errorf("%d keys on the new owner", len(keys))
	}

	// A node comes back as the member that it was.
	cl.Node(from).Restart(t)
	back := cl.NodeClient(t, from)
	key := redistest.Name(t)
	for cl.SlotOwner(t, redistest.Slot(key)) != from {
		key = redistest.Name(t)
	}
	redistest.Eventually(t, 20*time.Second, "the old owner serves its other slots again", func() bool {
		return back.Do(t.Context(), back.B().Set().Key(key).Value("v").Build()).Error() == nil
	})
}

func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	c := s.Client(t)
	mustDo(t, c, "SET", "k", "v")
	if n, err := c.Do(t.Context(), c.B().Wait().Numreplicas(1).Timeout(5000).Build()).AsInt64(); err != nil || n != 1 {
		t.Fatalf("WAIT: %d, %v", n, err)
	}
	old := s.KillMaster()
	now := s.WaitFailover(t, old)
	if now == old || now != s.MasterAddr(t) {
		t.Errorf("master %s, was %s", now, old)
	}
	redistest.Eventually(t, 20*time.Second, "the client reaches the new master", func() bool {
		return c.Do(t.Context(), c.B().Set().Key("after").Value("v").Build()).Error() == nil
	})
	if got := mustDo(t, c, "GET", "k"); got != "v" {
		t.Errorf("the key is %q", got)
	}
}
