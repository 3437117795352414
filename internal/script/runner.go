package script

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// A Runner sends the scripts of one session.
type Runner struct {
	client     rueidis.Client
	log        *slog.Logger
	conn       *Connection
	background *sync.WaitGroup
}

// NewRunner returns a Runner whose goroutines count in background.
func NewRunner(client rueidis.Client, log *slog.Logger, conn *Connection, background *sync.WaitGroup) *Runner {
	return &Runner{client: client, log: log, conn: conn, background: background}
}

// Run sends c once and waits for its reply until ctx ends.
func (r *Runner) Run(ctx context.Context, c Command) rueidis.RedisResult {
	if r.conn.suspect.Load() {
		return r.Multi(ctx, []Command{c})[0]
	}
	res := r.client.Do(ctx, r.evalsha(c))
	if res.Error() == nil && !r.conn.suspect.Load() {
		return res
	}
	if isNoScript(res) {
		res = r.client.Do(ctx, r.eval(c))
	}
	r.heard(res)
	return res
}

// heard notes whether the connection is in order, by an answer or its lack.
func (r *Runner) heard(res rueidis.RedisResult) {
	err := res.Error()
	_, fromRedis := rueidis.IsRedisErr(err)
	switch {
	case err == nil:
		r.conn.suspect.Store(false)
	case fromRedis:
		r.conn.suspect.Store(false)
		if Classify(err) == NotRun {
			r.conn.Doubt() // a failover or a resharding is under way
		}
	case !IsContext(err):
		r.conn.suspect.Store(true)
		r.conn.Doubt()
	}
}

// Multi sends many commands in one pipeline; the i-th result is that of cs[i].
//
// While rueidis connects anew, each caller waits for that whatever its context says
// (mux._pipe waits for the one that dials). So as long as the connection is in doubt the
// call has a goroutine of its own, which may end later than ctx.
func (r *Runner) Multi(ctx context.Context, cs []Command) []rueidis.RedisResult {
	if !r.conn.suspect.Load() {
		return r.send(ctx, cs)
	}
	answer := make(chan []rueidis.RedisResult, 1)
	r.background.Go(func() { answer <- r.send(ctx, cs) })
	select {
	case results := <-answer:
		return results
	case <-ctx.Done():
		results := make([]rueidis.RedisResult, len(cs))
		for i := range results {
			results[i] = rueidis.NewErrorResult(ctx.Err())
		}
		return results
	}
}

func (r *Runner) send(ctx context.Context, cs []Command) []rueidis.RedisResult {
	cmds := make(rueidis.Commands, len(cs))
	for i, c := range cs {
		cmds[i] = r.evalsha(c)
	}
	results := r.client.DoMulti(ctx, cmds...)
	r.heard(results[0])
	var again []int
	for i, res := range results {
		if isNoScript(res) {
			again = append(again, i)
		}
	}
	if again == nil {
		return results
	}
	cmds = cmds[:0]
	for _, i := range again {
		cmds = append(cmds, r.eval(cs[i]))
	}
	for j, res := range r.client.DoMulti(ctx, cmds...) {
		results[again[j]] = res
	}
	return results
}

func (r *Runner) evalsha(c Command) rueidis.Completed {
	return r.client.B().Evalsha().Sha1(c.Script.sha).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

func (r *Runner) eval(c Command) rueidis.Completed {
	return r.client.B().Eval().Script(c.Script.src).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

func isNoScript(res rueidis.RedisResult) bool {
	re, ok := rueidis.IsRedisErr(res.Error())
	return ok && re.IsNoScript()
}

// loadTimeout bounds Load: a node that is dead needs no scripts.
const loadTimeout = time.Second

// Load tells every node the scripts. It is a courtesy: where it fails, the first use of a
// script sends it whole.
func (r *Runner) Load(ctx context.Context) {
	all.Lock()
	scripts := all.scripts
	all.Unlock()
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	for _, node := range r.client.Nodes() {
		cmds := make(rueidis.Commands, 0, len(scripts))
		for _, sc := range scripts {
			cmds = append(cmds, node.B().ScriptLoad().Script(sc.src).Build())
		}
		for _, res := range node.DoMulti(ctx, cmds...) {
			if err := res.Error(); err != nil {
				r.log.Debug("relock: SCRIPT LOAD refused; scripts will be sent whole once", "error", err)
				break
			}
		}
	}
	r.conn.suspect.Store(false) // connecting for the first time is no reason for suspicion
}
