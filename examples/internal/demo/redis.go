// Package demo has what the example programs share: a Redis to work on, and a network
// that can be counted and cut.
package demo

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
)

// Redis is where a run takes place.
type Redis struct {
	Option rueidis.ClientOption // for a client of it
	Text   string               // what it is, for the reader
	Prefix string               // of all names that the run uses
	Close  func()
}

// OpenRedis starts an embedded Redis, or uses the one at addr, which is host:port or
// a URL such as redis://user:password@host:6379/1. program is the first part of the prefix.
func OpenRedis(addr, program string) (*Redis, error) {
	r := &Redis{
		Prefix: program + ":" + strings.ToLower(rand.Text()[:8]) + ":",
		Close:  func() {},
	}
	switch {
	case addr == "":
		mini := miniredis.NewMiniRedis()
		mini.ClockTTL(true) // leases end by the wall clock, as they do in Redis
		if err := mini.Start(); err != nil {
			return nil, fmt.Errorf("start miniredis: %w", err)
		}
		r.Close = mini.Close
		r.Text = "embedded miniredis (for your own: REDIS_ADDR=host:port)"
		// miniredis would be taken for a Cluster of one node.
		r.Option = rueidis.ClientOption{InitAddress: []string{mini.Addr()}, ForceSingleClient: true}
	case strings.Contains(addr, "://"):
		option, err := rueidis.ParseURL(addr)
		if err != nil {
			return nil, fmt.Errorf("REDIS_ADDR: %w", err)
		}
		r.Option, r.Text = option, strings.Join(option.InitAddress, ", ")+", from REDIS_ADDR"
	default:
		r.Option, r.Text = rueidis.ClientOption{InitAddress: []string{addr}}, addr+", from REDIS_ADDR"
	}
	r.Option.DisableCache = true // miniredis and some hosted ones have no CLIENT TRACKING
	return r, nil
}
