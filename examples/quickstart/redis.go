// This file finds a Redis to work on.
package main

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// A redisServer is where the run takes place.
type redisServer struct {
	option rueidis.ClientOption // for a client of it
	text   string               // what it is, for the reader
	prefix string               // of all names that the run uses
	close  func()
}

// openRedis starts an embedded Redis, or uses the one at addr, which is host:port or
// a URL such as redis://user:password@host:6379/1.
func openRedis(addr string) (*redisServer, error) {
	r := &redisServer{
		prefix: "relock-quickstart:" + strings.ToLower(rand.Text()[:8]) + ":",
		close:  func() {},
	}
	switch {
	case addr == "":
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true) // leases end by the wall clock, as they do in Redis
		if err := mini.Start(); err != nil {
			return nil, fmt.Errorf("start miniredis: %w", err)
		}
		r.close = mini.Close
		r.text = "embedded miniredis (for your own: REDIS_ADDR=host:port)"
		// miniredis would be taken for a Cluster of one node.
		r.option = rueidis.ClientOption{InitAddress: []string{mini.Addr()}, ForceSingleClient: true}
	case strings.Contains(addr, "://"):
		option, err := rueidis.ParseURL(addr)
		if err != nil {
			return nil, fmt.Errorf("REDIS_ADDR: %w", err)
		}
		r.option, r.text = option, strings.Join(option.InitAddress, ", ")+", from REDIS_ADDR"
	default:
		r.option, r.text = rueidis.ClientOption{InitAddress: []string{addr}}, addr+", from REDIS_ADDR"
	}
	r.option.DisableCache = true // miniredis and some hosted ones have no CLIENT TRACKING
	return r, nil
}
