package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
)

// A session that no node has told whether channels are sharded does not begin: for its lifetime it might publish
// releases where no other session listens.
func TestConnectWithoutKnowingHowToPublish(t *testing.T) {
	s := redistest.Mini(t)
	p := faulttest.New(t, s.Addr)
	x := madeOf(t, s.Client(t, func(o *rueidis.ClientOption) {
		o.ForceSingleClient = false // rueidis takes miniredis for a Cluster of one node
		o.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return d.DialContext(ctx, "tcp", p.Addr())
		}
	}), false)
	p.RefuseCommand("PUBSUB", "BUSY Redis is busy running a script.")
	if err := x.Connect(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("Connect: %v", err)
	}
}
