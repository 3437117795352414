package quorum_test

import (
	"context"
	"fmt"

	"relock/quorum"
	"relock/relocktest"
	"relock/rlock"
)

// One lock on three Redises, of which one goes down. A new deployment grants its first lock one
// lease after it was first asked; these three are made to look as if they had served for longer.
func Example() {
	ctx := context.Background()
	var sessions []*rlock.Session
	var servers []*relocktest.Redis
	for range 3 {
		session, server, done := relocktest.Open() // rlock.Dial opens one on a Redis of yours
		defer done()
		_ = server.Miniredis().Set("relock_quorum_life", " 1")
		sessions, servers = append(sessions, session), append(servers, server)
	}
	servers[2].Stop()
	defer servers[2].Resume() // before the sessions end, which would wait for it

	report := quorum.New(sessions, "nightly report")
	err := report.Do(ctx, func(ctx context.Context) error {
		fmt.Println("inside:", ctx.Err()) // ctx ends when the majority is lost
		return nil
	})
	fmt.Println(err)
	// Output:
	// inside: <nil>
	// <nil>
}
