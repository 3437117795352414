package topology_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session that begins looks for replicas, on any node of a Cluster. If a script keeps that one busy, the client
// panicked in a goroutine of its own when it had the connection back.
func TestLooksForReplicasOnABusyNode(t *testing.T) {
	t.Parallel()
	c := redistest.NewCluster(t)
	node := c.Node(c.Addrs[0])
	must(t, node.Do(t, "CONFIG", "SET", "lua-time-limit", "1").Error())
	slow, ended := node.Client(t), make(chan struct{})
	go func() {
		defer close(ended)
		_ = slow.Do(context.Background(), slow.B().Eval().Script("while true do end").Numkeys(0).Build()).Error()
	}()
	redistest.Eventually(t, 10*time.Second, "the server to be busy", func() bool {
		err := node.Do(t, "PING").Error()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	for range 12 { // which node is asked is left to chance
		ctx, cancel := context.WithCancel(context.Background()) // without a deadline
		ses, err := rlock.Dial(ctx, c.Option(), rlock.Config{Replicas: 1})
		if err == nil {
			must(t, ses.Close())
		} else {
			topoIs(t, "Dial", err, rlock.ErrUnavailable)
		}
		cancel()
	}
	must(t, node.Do(t, "SCRIPT", "KILL").Error())
	<-ended
}
