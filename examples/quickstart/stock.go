// This file keeps the stock in Redis, with ordinary commands and without any
// protection of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// stock is one service's view of the stock: two keys in Redis, of which one counts
// the units left and the other the units sold.
type stock struct {
	client    rueidis.Client
	leftKey   string
	soldKey   string
	units     int // that there were in the beginning
	keyExpiry time.Duration
}

// newStock names the keys. The braces keep them on one node of a Cluster, since they
// are read together.
func newStock(client rueidis.Client, prefix string, units int) *stock {
	return &stock{
		client: client, units: units,
		leftKey: "{" + prefix + "}left", soldKey: "{" + prefix + "}sold",
		keyExpiry: 10 * time.Minute, // should the run be killed
	}
}

// fill puts all units into the stock.
func (s *stock) fill(ctx context.Context) error {
	return s.do(ctx,
		s.client.B().Set().Key(s.leftKey).Value(strconv.Itoa(s.units)).Ex(s.keyExpiry).Build(),
		s.client.B().Set().Key(s.soldKey).Value("0").Ex(s.keyExpiry).Build())
}

// left reads how many units there are.
func (s *stock) left(ctx context.Context) (int, error) {
	n, err := s.client.Do(ctx, s.client.B().Get().Key(s.leftKey).Build()).AsInt64()
	if err != nil {
		return 0, fmt.Errorf("read the stock: %w", err)
	}
	return int(n), nil
}

// book writes how many units are left after one was sold.
func (s *stock) book(ctx context.Context, left int) error {
	return s.do(ctx,
		s.client.B().Set().Key(s.leftKey).Value(strconv.Itoa(left)).Ex(s.keyExpiry).Build(),
		s.client.B().Incr().Key(s.soldKey).Build())
}

// balanced reports whether the units left and the units sold are all there were.
func (s *stock) balanced(ctx context.Context) (bool, error) {
	both, err := s.client.Do(ctx, s.client.B().Mget().Key(s.leftKey, s.soldKey).Build()).AsIntSlice()
	if err != nil || len(both) != 2 {
		return false, errors.Join(errors.New("read the books"), err)
	}
	return int(both[0]+both[1]) == s.units, nil
}

// remove deletes the keys.
func (s *stock) remove(ctx context.Context) error {
	return s.do(ctx, s.client.B().Del().Key(s.leftKey, s.soldKey).Build())
}

// do sends the commands together and returns their errors.
func (s *stock) do(ctx context.Context, commands ...rueidis.Completed) error {
	var err error
	for _, reply := range s.client.DoMulti(ctx, commands...) {
		err = errors.Join(err, reply.Error())
	}
	return err
}
