package redis

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/clock"
	"relock/internal/inbox"
	"relock/internal/script"
)

var recordScript = script.Load(scripts, "lua/record.lua")

// A Record is that of one session.
type Record struct {
	cfg           *Config
	client        rueidis.Client
	key           string
	before, after string // what stands in it beside the time when the session began
	ttl           time.Duration
	started       string       // by Redis's clock; "" as long as it was not written
	due           atomic.Int64 // when it is to be written again, as a time.Duration; never while it is

	// turn has room for one, who writes it again or deletes it: of commands over two connections the first to be
	// sent may be the last to run. It is no mutex, for it is held while a command is under way.
	turn    chan struct{}
	dropped bool // it is not written any more
}

// leastTTL is for how long a record outlives its process at least. It is written again every
// third of it, which is a fraction of a percent of what an idle session sends.
const leastTTL = 3 * time.Minute

// NewRecord returns a record that has not been written yet. Of cfg it uses what describes the session, Timeout for one
// command, and Env. version is that of the module.
func NewRecord(client rueidis.Client, cfg *Config, version string) *Record {
	quoted, _ := json.Marshal(cfg.Label) // of strings: it cannot fail
	number, _ := json.Marshal(version)
	lease := script.Millis(cfg.Lease)
	r := &Record{
		cfg: cfg, client: client, key: inbox.Prefix + cfg.Session,
		before: `{"label":` + string(quoted) + `,"started":`, after: `,"version":` + string(number) + `,"lease":` + lease + `}`,
		ttl: max(leastTTL, 3*cfg.Lease), turn: make(chan struct{}, 1),
	}
	r.due.Store(int64(clock.Never))
	return r
}

// Write is the command that writes the record for the first time.
func (r *Record) Write() script.Command {
	return script.Command{Script: recordScript, Keys: []string{r.key}, Args: []string{r.before, r.after, script.Millis(r.ttl)}}
}

// Wrote takes in the answer to Write. It must be called before the methods below. Where Redis
// refuses the record there is none.
func (r *Record) Wrote(reply rueidis.RedisResult) {
	started, err := reply.ToString()
	if err != nil { // of an error too the client returns a text
		r.failed("written", err)
		return
	}
	r.started = started
	r.due.Store(int64(r.cfg.Env.Clock() + r.ttl/3))
}

// failed tells what has not worked; the session works without.
func (r *Record) failed(what string, err error) {
	r.cfg.Env.Log.Debug("relock: the session's record was not "+what, "key", r.key, "error", err)
}

// Tick has the record written again in the background if that is due, and returns when to call it
// again. It is called by one goroutine at a time.
func (r *Record) Tick(now time.Duration) (next time.Duration) {
	next = time.Duration(r.due.Load())
	if next > now {
		return next
	}
	r.due.Store(int64(clock.Never))
	r.cfg.Env.Background.Go(r.rewrite)
	return clock.Never
}

func (r *Record) rewrite() {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.dropped {
		return
	}
	ctx, cancel := context.WithTimeout(r.cfg.Env.Context, r.cfg.Timeout)
	defer cancel()
	err := r.client.Do(ctx, r.client.B().Set().Key(r.key).Value(r.before+r.started+r.after).Px(r.ttl).Build()).Error()
	if err != nil {
		r.failed("renewed", err)
	}
	due := r.cfg.Env.Clock() + r.ttl/3
	r.due.Store(int64(due))
	r.cfg.Env.WakeAt(due)
}

// Drop deletes the record if it was written, and waits for that, for so long at most: if Redis does
// not answer, its TTL does. The command has a goroutine of its own, since it may have to wait for
// a connection whatever a context says.
func (r *Record) Drop(most time.Duration) {
	if r.started == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	r.cfg.Env.Background.Go(func() {
		defer cancel()
		r.turn <- struct{}{}
		defer func() { <-r.turn }()
		r.dropped = true
		_ = r.client.Do(ctx, r.client.B().Del().Key(r.key).Build()).Error()
	})
	<-ctx.Done()
}
