package pubsub_test

import (
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
)

// A node that lets no client in has not said that it knows no sharded channels, and another node can tell.
// What a hub takes for the answer it keeps for its lifetime.
func TestANodeThatRefusesTheClientDoesNotSayThatChannelsAreNotSharded(t *testing.T) {
	t.Parallel()
	redistest.NeedSharded(t)
	c := redistest.NewCluster(t)
	for _, addr := range c.Addrs[1:] {
		if err := c.Node(addr).Do(t, "CONFIG", "SET", "requirepass", "secret").Error(); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 { // the hub begins with any node
		client := c.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = c.Addrs[:1] })
		if sharded, err := newHub(t, client).Sharded(testContext(t)); !sharded || err != nil {
			t.Fatalf("Sharded() = %v, %v", sharded, err)
		}
	}
}
