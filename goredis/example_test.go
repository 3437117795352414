package goredis_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"relock/goredis"
	"relock/rlock"
)

// openSession opens a session to the Redis that the application's go-redis client uses.
func openSession(ctx context.Context, options *redis.UniversalOptions) (*rlock.Session, error) {
	opt, err := goredis.Options(options)
	if err != nil {
		return nil, err
	}
	return rlock.Dial(ctx, opt, rlock.Config{})
}

func Example() {
	_, err := openSession(context.Background(), &redis.UniversalOptions{
		Addrs:     []string{"redis.example.com:6379"},
		OnConnect: func(context.Context, *redis.Conn) error { return nil },
	})
	fmt.Println(err)
	// Output:
	// goredis: rlock: bad config: OnConnect is given a connection of go-redis; leave it out, and use Username, ClientName and the like
}
