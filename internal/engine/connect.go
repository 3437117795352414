package engine

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/probe"
)

// How a session begins.

// connect has the session listen, and proves that it can work.
func (s *Session) connect(ctx context.Context, opt Options) error {
	if err := s.listenToOwnChannel(ctx); err != nil {
		return err
	}
	var tried <-chan struct{}
	if opt.Direct != nil && !s.inbox.Deaf() {
		tried = s.run.UseDirect(opt.Direct, func(ctx context.Context, direct rueidis.Client) bool {
			return s.inbox.Reached(ctx, direct, s.client)
		})
	}
	s.conn.Connected()
	if err := s.begin(ctx); err != nil {
		s.record.Drop(farewellTime)
		s.run.Close()
		return err
	}
	awaitDirect(ctx, tried)
	return nil
}

// begin finds out in one round trip whether locks can work here, and writes the session's
// record. What the server can never do is an error that says how to change that.
func (s *Session) begin(ctx context.Context) error {
	server := probe.Server{Prefix: s.cfg.Prefix, Cluster: s.space.Cluster, Publish: s.space.Publish}
	cmds := append(server.Commands(), s.record.Write())
	results := s.run.Multi(ctx, cmds)
	last := len(results) - 1
	s.record.Wrote(results[last])
	if err := server.Verdict(results[:last]); err != nil {
		return err
	}
	return s.replicas.Check(ctx, s.space.Cluster, s.cfg.Logger)
}

// listenToOwnChannel finds out how releases are published here and subscribes to the session's
// own channel.
func (s *Session) listenToOwnChannel(ctx context.Context) error {
	sharded, err := s.hub.Sharded(ctx)
	if err == nil && sharded {
		s.space.Publish = "SPUBLISH"
	}
	if s.cfg.Polling != nil {
		s.pollPause, _ = s.cfg.Polling.Next(1)
		s.inbox.Shut()
		return ctx.Err()
	}
	return s.inbox.Open(ctx, err)
}

// directPatience is how long New waits for the direct connection, which it can do without.
const directPatience = 250 * time.Millisecond

// awaitDirect waits a little until the direct connection was tried, if it is (tried is not nil): the
// first Lock is to find it.
func awaitDirect(ctx context.Context, tried <-chan struct{}) {
	if tried == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, directPatience)
	defer cancel()
	select {
	case <-tried:
	case <-ctx.Done():
	}
}
