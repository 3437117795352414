package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
	"relock/internal/script"
)

// Connect blocks until the session listens to its own channel and Redis has shown that locks can
// work there, or ctx ends. After an error nothing of the session is left, but for a client of the
// caller's and what is stuck in that.
func (d *Deployment) Connect(ctx context.Context) error {
	err := d.connect(ctx)
	if err != nil {
		d.Record.Drop(Farewell)
		d.cfg.Life.Stop()
		d.cfg.Life.Farewell(Farewell, d.Close, d.Conn.Sever) // a dial may be under way, which only that ends
	}
	return err
}

// directPatience is how long Connect waits for the direct connection, which a session can do without.
const directPatience = 250 * time.Millisecond

func (d *Deployment) connect(ctx context.Context) error {
	sent := d.cfg.Env.Clock()
	if err := Ping(ctx, d.Client); err != nil {
		return fmt.Errorf("ping: %w", script.AsUnavailable(err))
	}
	d.Trip = d.cfg.Env.Clock() - sent
	if err := d.listen(ctx); err != nil {
		return script.AsUnavailable(err)
	}
	var tried <-chan struct{} // closed when the direct connection was tried; nil if it is not
	if d.opt.Direct != nil && !d.Inbox.Deaf.Load() {
		tried = d.Run.UseDirect(d.opt.Direct, func(ctx context.Context, direct rueidis.Client) bool {
			return d.Inbox.Reached(ctx, direct, d.Client)
		})
	}
	d.Conn.Connected()
	if err := d.begin(ctx); err != nil || tried == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, directPatience)
	defer cancel()
	select {
	case <-tried: // the first Lock finds it
	case <-ctx.Done():
	}
	return nil
}

// listen finds out how releases are published here and subscribes to the session's own channel.
func (d *Deployment) listen(ctx context.Context) error {
	sharded, err := d.hub.Sharded(ctx)
	if err != nil { // a guess would stand for the session's lifetime, and wake nobody if it is wrong
		return fmt.Errorf("find out whether channels are sharded: %w", err)
	}
	if sharded {
		d.Space.Publishing = keyname.Publishes(d.Space.Cluster, true)
	}
	if d.cfg.Polls {
		d.Inbox.Deaf.Store(true)
		return ctx.Err()
	}
	return d.Inbox.Open(ctx)
}

// begin finds out in one round trip whether locks can work here, and writes the session's
// record. What the server can never do is an error that says how to change that.
func (d *Deployment) begin(ctx context.Context) error {
	server := Server{Prefix: d.Space.Prefix, Cluster: d.Space.Cluster, Publish: d.Space.Publish}
	cmds := append(server.Commands(), d.Record.Write())
	sent := d.cfg.Env.Clock()
	results := d.Run.Multi(ctx, cmds)
	d.Trip = min(d.Trip, d.cfg.Env.Clock()-sent)
	last := len(results) - 1
	d.Record.Wrote(results[last])
	if err := server.Verdict(results[:last]); err != nil {
		return err
	}
	d.Mute = server.Mute(results[:last])
	return d.Replicas.Check(ctx, d.Space.Cluster, d.cfg.Logger)
}
