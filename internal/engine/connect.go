package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/backoff"
	"relock/internal/keyname"
	"relock/internal/probe"
)

// How a session begins.

// refusalRetry is how often a refused subscription is tried again: seldom enough that an idle
// waiter stays below one command a second.
const refusalRetry = 5 * time.Second

// connect has the session listen, and proves that it can work.
func (s *Session) connect(ctx context.Context, opt Options) error {
	if err := s.listenToOwnChannel(ctx); err != nil {
		return err
	}
	var tried <-chan struct{}
	if opt.Direct != nil && !s.silent.Load() {
		tried = s.run.UseDirect(opt.Direct, s.sameServer)
	}
	s.conn.Connected()
	if err := s.begin(ctx); err != nil {
		s.dropRecord()
		s.run.Close()
		return err
	}
	s.awaitDirect(ctx, tried)
	return nil
}

// begin finds out in one round trip whether locks can work here, and writes the session's
// record. What the server can never do is an error that says how to change that.
func (s *Session) begin(ctx context.Context) error {
	server := probe.Server{Prefix: s.cfg.Prefix, Cluster: s.cluster, Publish: s.space.Publish}
	cmds := append(server.Commands(), s.record.Write())
	results := s.run.Multi(ctx, cmds)
	last := len(results) - 1
	s.recorded(results[last])
	if err := server.Verdict(results[:last]); err != nil {
		return err
	}
	return s.replicas.Check(ctx, s.cluster, s.cfg.Logger)
}

// ping returns nil as soon as one node answers: in a Cluster others may be down.
func ping(ctx context.Context, client rueidis.Client) error {
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

// listenToOwnChannel finds out how releases are published here and subscribes to the session's
// own channel. Where subscribing is refused the session works without: a forced unlock is then
// noticed at the next renewal.
func (s *Session) listenToOwnChannel(ctx context.Context) error {
	s.space = keyname.Space{Prefix: s.cfg.Prefix, Cluster: s.cluster, Publish: "PUBLISH"}
	sharded, err := s.hub.Sharded(ctx)
	if err == nil && sharded {
		s.space.Publish = "SPUBLISH"
	}
	if s.cfg.Polling != nil {
		s.pollPause, _ = s.cfg.Polling.Next(1)
		s.silent.Store(true)
		return ctx.Err()
	}
	if err == nil {
		_, err = s.hub.ListenFunc(ctx, SessionChannel+s.id, true, s.told)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	if err != nil {
		s.cfg.Logger.Warn("relock: cannot subscribe; waiters will poll", "error", err)
		s.silent.Store(true)
		s.life.Background.Go(s.keepAskingToListen)
	}
	return nil
}

// keepAskingToListen subscribes to the session's channel when that is allowed again. The hub
// asks the server every refusalRetry, not at each of these calls.
func (s *Session) keepAskingToListen() {
	for {
		if _, err := s.hub.ListenFunc(s.life.Context, SessionChannel+s.id, true, s.told); err == nil {
			s.silent.Store(false)
			s.recheck()
			return
		}
		if backoff.Sleep(s.life.Context, backoff.Jitter(refusalRetry/5)) != nil {
			return
		}
	}
}

// anyoneHere is what a session tells itself to find out whether it would hear it.
const anyoneHere = ""

// directPatience is how long New waits for the direct connection, which it can do without.
const directPatience = 250 * time.Millisecond

// awaitDirect waits a little until the direct connection was tried: the first Lock is to find it.
func (s *Session) awaitDirect(ctx context.Context, tried <-chan struct{}) {
	if tried == nil {
		return
	}
	timer := time.NewTimer(directPatience)
	defer timer.Stop()
	select {
	case <-tried:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sameServer reports whether a client of one connection leads to the server where this session
// listens, and its own client too: only there does the session's own channel have a listener.
func (s *Session) sameServer(ctx context.Context, direct rueidis.Client) bool {
	for _, c := range []rueidis.Client{direct, s.client} {
		n, err := c.Do(ctx, c.B().Publish().Channel(SessionChannel+s.id).Message(anyoneHere).Build()).AsInt64()
		if err != nil || n == 0 {
			return false
		}
	}
	return true
}
