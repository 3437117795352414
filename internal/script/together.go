package script

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// aside marks the context of a call that may have a connection of its own made.
type aside struct{}

// IsAside reports whether a connection that is dialled with ctx is one beside those that the
// session's other commands go over: its loss is no reason to doubt anything.
func IsAside(ctx context.Context) bool { return ctx.Value(aside{}) != nil }

// Replicated sends commands, whose keys are all in one slot, and behind them on the same
// connection WAIT for n replicas, for at most bound. It returns the replies and how many replicas
// have acknowledged what the commands wrote; the error is that of WAIT. Each command is sent
// twice if the server does not know a script.
//
// WAIT blocks a connection, so one of rueidis's pool is used. Commands come over it in no order
// with those of [Runner.Run] and [Runner.Multi]: they must be such that do no harm when they come
// late.
func (r *Runner) Replicated(ctx context.Context, cs []Command, n int, bound time.Duration) (replies []rueidis.RedisResult, acknowledged int64, err error) {
	answer := make(chan []rueidis.RedisResult, 1)
	r.background.Go(func() { // which may have to wait for a connection whatever ctx says
		answer <- r.together(context.WithValue(ctx, aside{}, true), cs, n, bound)
	})
	select {
	case replies = <-answer:
	case <-ctx.Done():
		return failed(len(cs), ctx.Err()), 0, ctx.Err()
	}
	for _, res := range replies {
		if res.Error() != nil {
			r.refused(res.Error())
		}
	}
	acknowledged, err = replies[len(cs)].AsInt64()
	return replies[:len(cs)], acknowledged, err
}

// together sends a pipeline over one connection.
func (r *Runner) together(ctx context.Context, cs []Command, n int, bound time.Duration) []rueidis.RedisResult {
	send := r.client.DoMulti
	if r.client.Mode() == rueidis.ClientModeCluster {
		// The client would send again what is redirected to another node, one by one.
		dedicated, release := r.client.Dedicate()
		defer release()
		send = func(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
			results := dedicated.DoMulti(ctx, cmds...)
			// WAIT may still block it. And one that was used without a deadline unsubscribes when it is given back, where
			// rueidis panics if the server is busy with a script (v1.0.79).
			if _, bounded := ctx.Deadline(); !bounded || results[len(results)-1].NonRedisError() != nil {
				dedicated.Close()
			}
			return results
		}
	}
	build := evalsha
	for {
		cmds := make(rueidis.Commands, 0, len(cs)+1)
		for _, c := range cs {
			cmds = append(cmds, build(r.client, c))
		}
		cmds = append(cmds, r.client.B().Wait().Numreplicas(int64(n)).Timeout(max(1, bound.Milliseconds())).Build())
		results := send(ctx, cmds...)
		unknown := false
		for _, res := range results[:len(cs)] {
			re, ok := rueidis.IsRedisErr(res.Error())
			unknown = unknown || ok && re.IsNoScript()
		}
		if !unknown {
			return results
		}
		build = eval
	}
}
