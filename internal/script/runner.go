package script

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/redis/rueidis"

	"relock/internal/life"
)

// A Runner sends the scripts of one session.
type Runner struct {
	client     rueidis.Client
	conn       *Connection
	background *life.Group

	direct  *Direct      // nil: there is none
	lost    atomic.Int64 // calls of client that got no answer
	settled atomic.Int64 // how many of them were sent before one that got an answer

	stragglers life.Group
}

// NewRunner returns a Runner whose goroutines count in background.
func NewRunner(client rueidis.Client, conn *Connection, background *life.Group) *Runner {
	return &Runner{client: client, conn: conn, background: background}
}

// UseDirect has commands that are alone go over d, as soon as proves finds that the connection
// leads to the session's server. It must be called before the first Run. The channel is closed
// when d has connected or failed to.
func (r *Runner) UseDirect(d *Direct, proves func(context.Context, rueidis.Client) bool) <-chan struct{} {
	d.proves, d.background = proves, r.background
	r.direct = d
	tried := make(chan struct{})
	d.dialing = true
	d.background.Go(func() {
		defer close(tried)
		d.connect()
	})
	return tried
}

// Close ends the direct connection; the client is the session's.
func (r *Runner) Close() {
	if r.direct != nil {
		r.direct.close()
	}
}

// Run sends c once and waits for its reply until ctx ends.
func (r *Runner) Run(ctx context.Context, c Command) rueidis.RedisResult {
	alone := r.conn.flying.Add(1) == 1
	d := r.direct
	var used *link // over which the call has not returned
	defer func() {
		if used != nil {
			d.abandon(used)
		}
		r.conn.flying.Add(-1)
	}()
	if alone && d != nil && !d.over.Load() && !r.conn.suspect.Load() && r.settled.Load() == r.lost.Load() {
		switch l := d.link.Load(); {
		case l == nil:
			d.renew()
		case l.doubts != r.conn.Doubts.Load() || l.raw.Control(l.look) != nil || !l.idle:
			d.replace(l)
		case ctx.Err() != nil:
			return rueidis.NewErrorResult(ctx.Err())
		default:
			d.underWay <- struct{}{}
			used = l
			stop := context.AfterFunc(ctx, l.ends)
			// A context without a deadline has rueidis stay synchronous; ConnWriteTimeout is the bound.
			res := c.Script.alone.Exec(context.Background(), l.client, c.Keys, c.Args)
			used = nil
			if stop() && res.NonRedisError() == nil {
				<-d.underWay
			} else {
				res = d.fail(ctx, l, res)
			}
			if err := res.Error(); err != nil {
				r.heard(res)
				if c.Fewer != nil && fewerKeys(err) {
					return r.Run(ctx, c.fewer(err))
				}
			}
			return res
		}
	}
	if d != nil && d.left.Load() {
		if err := d.wait(ctx); err != nil {
			return rueidis.NewErrorResult(err)
		}
	}
	if r.conn.suspect.Load() {
		return r.multi(ctx, []Command{c})[0]
	}
	before := r.lost.Load()
	res := c.Script.alone.Exec(ctx, r.client, c.Keys, c.Args)
	ok := res.Error() == nil
	if !ok || r.settled.Load() < before {
		r.settle(before, res)
	}
	if !ok || r.conn.suspect.Load() {
		r.heard(res)
	}
	if !ok && c.Fewer != nil && fewerKeys(res.Error()) {
		return r.Run(ctx, c.fewer(res.Error()))
	}
	return res
}

// settle notes whether a call of the client that began when before calls were lost has got an
// answer: then Redis has executed, or will never, what was sent before it.
func (r *Runner) settle(before int64, res rueidis.RedisResult) {
	if res.NonRedisError() != nil {
		r.lost.Add(1)
		return
	}
	for {
		now := r.settled.Load()
		if now >= before || r.settled.CompareAndSwap(now, before) {
			return
		}
	}
}

// heard notes whether the connection is in order, by an answer or its lack.
func (r *Runner) heard(res rueidis.RedisResult) {
	err := res.Error()
	_, fromRedis := rueidis.IsRedisErr(err)
	switch {
	case err == nil:
		r.conn.suspect.Store(false)
		r.conn.arrived()
	case fromRedis:
		r.conn.suspect.Store(false)
		r.refused(err)
	case !IsContext(err):
		r.conn.suspect.Store(true)
		r.conn.Doubt()
	}
}

// refused notes what an error reply says of the server.
func (r *Runner) refused(err error) {
	if Classify(err) == NotRun {
		r.conn.Doubt() // a failover or a resharding is under way
	}
	if noPrimary(err) {
		r.conn.leave(loads(err))
	}
	if r.conn.moves.leaving.Load() {
		r.conn.suspect.Store(true) // the first command that is executed is to be seen
	}
}

// Multi sends many commands in one pipeline; the i-th result is that of cs[i].
//
// While rueidis connects anew, each caller waits for that whatever its context says
// (mux._pipe waits for the one that dials). So as long as the connection is in doubt the
// call has a goroutine of its own, which may end later than ctx.
func (r *Runner) Multi(ctx context.Context, cs []Command) []rueidis.RedisResult {
	r.conn.flying.Add(1)
	defer r.conn.flying.Add(-1)
	if r.direct != nil {
		if err := r.direct.wait(ctx); err != nil {
			return failed(len(cs), err)
		}
	}
	return r.multi(ctx, cs)
}

// InOrder is [Runner.Multi], but the last command is executed behind the others whatever happens: if one of these had
// to be sent again, because the server did not know its script or for its keys, the last one is too.
func (r *Runner) InOrder(ctx context.Context, cs []Command) []rueidis.RedisResult {
	cs[len(cs)-1].behind = true
	return r.Multi(ctx, cs)
}

func (r *Runner) multi(ctx context.Context, cs []Command) []rueidis.RedisResult {
	if !r.conn.suspect.Load() {
		return r.send(ctx, cs)
	}
	if err := ctx.Err(); err != nil { // the session may have closed meanwhile, which waits for no goroutine any more
		return failed(len(cs), err)
	}
	answer := make(chan []rueidis.RedisResult, 1)
	var over atomic.Bool // for one of the two: the goroutine has returned, or its caller has left
	r.background.Go(func() {
		answer <- r.send(ctx, cs)
		if over.Swap(true) {
			r.stragglers.Add(-1)
		}
	})
	select {
	case results := <-answer:
		return results
	case <-ctx.Done():
		r.lost.Add(1)
		r.stragglers.Add(1)
		if over.Swap(true) { // it has returned meanwhile
			r.stragglers.Add(-1)
		}
		return failed(len(cs), ctx.Err())
	}
}

func failed(n int, err error) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, n)
	for i := range results {
		results[i] = rueidis.NewErrorResult(err)
	}
	return results
}

func (r *Runner) send(ctx context.Context, cs []Command) []rueidis.RedisResult {
	cmds := make(rueidis.Commands, len(cs))
	for i, c := range cs {
		cmds[i] = evalsha(r.client, c)
	}
	before := r.lost.Load()
	results := r.client.DoMulti(ctx, cmds...)
	last := len(cs) - 1
	r.settle(before, results[last])
	r.heard(results[0])
	var again []int
	fewer := false // one was sent again with fewer keys, and the last one was not, behind it
	for i, res := range results {
		err := res.Error()
		switch re, ok := rueidis.IsRedisErr(err); {
		case ok && re.IsNoScript():
			again = append(again, i)
		case err != nil && cs[i].Fewer != nil && fewerKeys(err):
			results[i] = r.Run(ctx, cs[i].fewer(err))
			fewer = i < last
		}
	}
	if cs[last].behind && (fewer || again != nil) && !slices.Contains(again, last) {
		again = append(again, last)
	}
	if again == nil {
		return results
	}
	cmds = cmds[:0]
	for _, i := range again {
		cmds = append(cmds, eval(r.client, cs[i]))
	}
	for j, res := range r.client.DoMulti(ctx, cmds...) {
		results[again[j]] = res
	}
	r.heard(results[again[0]])
	return results
}

func evalsha(client rueidis.Client, c Command) rueidis.Completed {
	return client.B().Evalsha().Sha1(c.Script.sha).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

func eval(client rueidis.Client, c Command) rueidis.Completed {
	return client.B().Eval().Script(c.Script.src).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}
