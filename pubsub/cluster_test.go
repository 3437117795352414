package pubsub_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/pubsub"
)

// spublish publishes as the locks do: in a script, on the node of the channel's slot.
func spublish(t *testing.T, client rueidis.Client, channel, payload string) {
	t.Helper()
	const script = `return redis.call('SPUBLISH', KEYS[1], ARGV[1])`
	cmd := client.B().Eval().Script(script).Numkeys(1).Key(channel).Arg(payload).Build()
	if err := client.Do(testContext(t), cmd).Error(); err != nil {
		t.Fatalf("SPUBLISH: %v", err)
	}
}

// nodeOf returns the node that serves the channel, and another.
func nodeOf(t *testing.T, c *redistest.Cluster, channel string) (owner, other string) {
	t.Helper()
	owner = c.SlotOwner(t, redistest.Slot(channel))
	for _, addr := range c.Addrs {
		if addr != owner {
			return owner, addr
		}
	}
	panic("a cluster of one")
}

func TestClusterShardedChannels(t *testing.T) {
	t.Parallel()
	redistest.NeedSharded(t)
	c := redistest.NewCluster(t)
	client := c.Client(t)
	h := newHub(t, client)
	if sharded, err := h.Sharded(testContext(t)); !sharded || err != nil {
		t.Fatalf("Sharded() = %v, %v", sharded, err)
	}
	const n = 2000
	prefix := redistest.Name(t)
	ls := make([]*pubsub.Listener, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			if ls[i], err = h.Listen(context.Background(), fmt.Sprintf("%s-%d", prefix, i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for _, addr := range c.Addrs {
		if got := subscribers(t, c.Node(addr)); got != 1 {
			t.Errorf("node %s: %d subscriber connections, want 1", addr, got)
		}
	}
	for i := 0; i < n; i += 97 {
		spublish(t, client, fmt.Sprintf("%s-%d", prefix, i), fmt.Sprint(i))
		receivePayload(t, ls[i].C(), fmt.Sprint(i))
	}
	for _, l := range ls {
		l.Close()
	}
	for _, addr := range c.Addrs {
		redistest.Eventually(t, patience, "all is unsubscribed", func() bool {
			return len(c.Subscribed(t, addr)) == 0 && subscribers(t, c.Node(addr)) == 0
		})
	}
}

func TestClusterConfirmedBeforeListenReturns(t *testing.T) {
	t.Parallel()
	redistest.NeedSharded(t)
	c := redistest.NewCluster(t)
	client := c.Client(t)
	h := newHub(t, client, pubsub.Linger(0))
	for i := range 200 {
		channel := fmt.Sprintf("{%s}", redistest.Name(t))
		l := mustListen(t, h, channel)
		spublish(t, client, channel, fmt.Sprint(i))
		receivePayload(t, l.C(), fmt.Sprint(i))
		l.Close()
	}
}

func TestClusterSlotMigratesWhileListening(t *testing.T) {
	t.Parallel()
	redistest.NeedSharded(t)
	c := redistest.NewCluster(t)
	client := c.Client(t)
	h := newHub(t, client)
	channel := redistest.Name(t)
	l := record(t, h, channel, false)
	for i := range 4 { // there and back again
		_, to := nodeOf(t, c, channel)
		c.MigrateSlot(t, redistest.Slot(channel), to)
		receiveMissed(t, l)
		receiveMissed(t, l) // subscribed on the new node
		spublish(t, client, channel, fmt.Sprint(i))
		receivePayload(t, l, fmt.Sprint(i))
	}
}

// The hub's idea of a slot may be old when Listen is called: the MOVED puts it right.
func TestClusterListenFollowsMovedSlot(t *testing.T) {
	t.Parallel()
	redistest.NeedSharded(t)
	c := redistest.NewCluster(t)
	client := c.Client(t)
	h := newHub(t, client)
	tag := redistest.Name(t)
	mustListen(t, h, "other-"+tag) // so that the topology is known
	channel := "{" + tag + "}"
	_, to := nodeOf(t, c, channel)
	c.MigrateSlot(t, redistest.Slot(channel), to)
	l := mustListen(t, h, channel)
	spublish(t, client, channel, "x")
	receivePayload(t, l.C(), "x")
}

func TestClusterBroadcastMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	client := c.Client(t)
	h := newHub(t, client)
	channel := redistest.Name(t)
	l := record(t, h, channel, true)
	carrier := func() string {
		for _, addr := range c.Addrs {
			if len(c.Node(addr).Channels(t)) > 0 {
				return addr
			}
		}
		return ""
	}
	from := carrier()
	for _, addr := range c.Addrs { // a PUBLISH on any node arrives
		publish(t, c.Node(addr), channel, addr)
		receivePayload(t, l, addr)
	}
	c.KillNode(from)
	receiveMissed(t, l)
	receiveMissed(t, l)
	for _, addr := range c.Addrs {
		if addr != from {
			publish(t, c.Node(addr), channel, addr)
			receivePayload(t, l, addr)
		}
	}
}

// The slots of a node without replica have no owner once it is dead: Listen tells, the
// other slots go on, and all is well when the node is back.
func TestClusterNodeDiesAndReturns(t *testing.T) {
	t.Parallel()
	redistest.NeedSharded(t)
	c := redistest.NewCluster(t)
	client := c.Client(t)
	h := newHub(t, client)
	tag := redistest.Name(t)
	dead := tag
	owner, _ := nodeOf(t, c, dead)
	alive := ""
	for i := 0; alive == ""; i++ {
		if name := fmt.Sprint(tag, i); c.SlotOwner(t, redistest.Slot(name)) != owner {
			alive = name
		}
	}
	onDead, onAlive := record(t, h, dead, false), record(t, h, alive, false)
	c.KillNode(owner)
	receiveMissed(t, onDead)
	if _, err := h.Listen(testContext(t), "{"+dead+"}"); err == nil {
		t.Error("Listen on a dead node's slot succeeded")
	} else {
		t.Logf("Listen: %v", err)
	}
	spublish(t, client, alive, "x")
	receivePayload(t, onAlive, "x")
	c.Node(owner).Restart(t)
	receiveMissed(t, onDead)
	redistest.Eventually(t, patience, "the slot is served again", func() bool {
		return client.Do(testContext(t), client.B().Exists().Key(dead).Build()).Error() == nil
	})
	spublish(t, client, dead, "y")
	receivePayload(t, onDead, "y")
}

// While no node answers, that the topology cannot be read is told at the outset, and not with each try.
func TestClusterThatIsAwayIsNotToldAgainAndAgain(t *testing.T) {
	t.Parallel()
	redistest.NeedSharded(t)
	c := redistest.NewCluster(t)
	records := make(chan string, 10_000)
	log := slog.New(slog.NewTextHandler(lines(records), &slog.HandlerOptions{Level: slog.LevelDebug}))
	h := newHub(t, c.Client(t), pubsub.Logger(log))
	l := record(t, h, redistest.Name(t), false)
	for _, addr := range c.Addrs {
		c.KillNode(addr)
	}
	receiveMissed(t, l)
	began, warned := time.Now(), 0
	for tries := 0; tries < 4; {
		line := locktest.Get(t, records, patience, "a record")
		if strings.Contains(line, "topology") {
			tries++
			warned += strings.Count(line, "level=WARN")
		}
	}
	if most := 1 + int(time.Since(began)/(10*time.Second)); warned < 1 || warned > most {
		t.Errorf("of 4 tries %d were told, want 1 to %d", warned, most)
	}
}

// lines is a writer that passes on what is written.
type lines chan<- string

func (l lines) Write(line []byte) (int, error) { l <- string(line); return len(line), nil }

// A client made without ForceSingleClient takes miniredis for a cluster of one node,
// which knows no sharded channels.
func TestClusterClientOfMiniredis(t *testing.T) {
	s := redistest.Mini(t)
	client := s.Client(t, func(o *rueidis.ClientOption) { o.ForceSingleClient = false })
	if client.Mode() != rueidis.ClientModeCluster {
		t.Fatalf("mode %v", client.Mode())
	}
	h := newHub(t, client)
	if sharded, err := h.Sharded(testContext(t)); sharded || err != nil {
		t.Fatalf("Sharded() = %v, %v", sharded, err)
	}
	channel := redistest.Name(t)
	l := mustListen(t, h, channel)
	publish(t, s, channel, "x")
	receivePayload(t, l.C(), "x")
}
