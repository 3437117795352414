package redis

import (
	"context"

	"github.com/redis/rueidis"
)

// Ping returns nil as soon as one node answers: in a Cluster others may be down.
func Ping(ctx context.Context, client rueidis.Client) error {
	err := client.Do(ctx, client.B().Ping().Build()).Error()
	if err == nil || client.Mode() != rueidis.ClientModeCluster {
		return err
	}
	for _, node := range client.Nodes() {
		if ctx.Err() != nil {
			return err
		}
		if e := node.Do(ctx, node.B().Ping().Build()).Error(); e == nil {
			return nil
		}
	}
	return err
}
