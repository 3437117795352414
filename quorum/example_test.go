package quorum_test

import (
	"context"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/quorum"
	"relock/rlock"
)

// One lock on three Redises, of which one goes down. A new deployment grants its first lock one
// lease after it was first asked, here 1 s.
func Example() {
	ctx := context.Background()
	var sessions []*rlock.Session
	var servers []*miniredis.Miniredis
	for range 3 {
		server, err := miniredis.Run() // stands for a Redis
		if err != nil {
			fmt.Println(err)
			return
		}
		session, err := rlock.Dial(ctx, rueidis.ClientOption{InitAddress: []string{server.Addr()}, ForceSingleClient: true},
			rlock.Config{Lease: time.Second, ReleaseTimeout: time.Second})
		if err != nil {
			fmt.Println(err)
			return
		}
		defer server.Close()
		defer session.Close()
		server.ClockTTL(true)
		sessions, servers = append(sessions, session), append(servers, server)
	}
	servers[2].Close()

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
