package beside_test

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"relock/relocktest"
	"relock/rlock"
)

// options returns what reaches the same Redis as a go-redis client with these options. Locks have
// connections of their own: two per process and Redis node, one of them for messages.
func options(o *redis.UniversalOptions) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: o.Addrs,
		Username:    o.Username,
		Password:    o.Password,
		SelectDB:    o.DB,
		TLSConfig:   o.TLSConfig,
		Sentinel: rueidis.SentinelOption{
			MasterSet: o.MasterName,
			Username:  o.SentinelUsername,
			Password:  o.SentinelPassword,
			TLSConfig: o.TLSConfig,
		},
	}
}

// visit reads and writes with the application's client, in the section of a lock.
func visit(ctx context.Context, m *rlock.Mutex, client redis.UniversalClient) error {
	return m.Do(ctx, func(ctx context.Context) error {
		n, err := client.Get(ctx, "visits").Int()
		if err != nil && err != redis.Nil {
			return err
		}
		return client.Set(ctx, "visits", n+1, 0).Err()
	})
}

// Locks beside a go-redis client.
func Example_goRedis() {
	_, embedded, done := relocktest.Open()
	defer done()
	ctx := context.Background()

	o := &redis.UniversalOptions{Addrs: []string{"redis:6379"}, DB: 0}
	o.Dialer = func(context.Context, string, string) (net.Conn, error) { return embedded.Miniredis().Dial() }
	client := redis.NewUniversalClient(o)
	defer client.Close()

	opt := options(o)
	opt.DialCtxFn, opt.ForceSingleClient = embedded.Option().DialCtxFn, true // for the embedded Redis
	session, err := rlock.Dial(ctx, opt, rlock.Config{Prefix: "lock:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	for range 3 {
		if err := visit(ctx, rlock.New(session, "visits"), client); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(client.Get(ctx, "visits").Val())
	// Output: 3
}
