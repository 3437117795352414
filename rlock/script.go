package rlock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"sync"

	"github.com/redis/rueidis"
)

// Script is one Lua script of a primitive. It is sent by its SHA-1, and whole when
// the server does not know it (after a restart, a failover or SCRIPT FLUSH).
type Script struct {
	src, sha string
}

// scripts are all that were made in this program. A session loads them when it
// starts, so that not even the first use of one costs a second round trip.
var scripts struct {
	sync.Mutex
	all []*Script
}

// NewScript registers a script. Packages call it once per script, in a variable.
func NewScript(src string) *Script {
	sum := sha1.Sum([]byte(src))
	sc := &Script{src: src, sha: hex.EncodeToString(sum[:])}
	scripts.Lock()
	defer scripts.Unlock()
	scripts.all = append(scripts.all, sc)
	return sc
}

// Command is one call of a script. All keys must be in one hash slot.
type Command struct {
	Script     *Script
	Keys, Args []string

	// Wider, if not nil, are the keys that a release must be made with instead when
	// its reply is {n > 0, 0}: the owner has holds that the session did not know of.
	// The same for an extension whose reply is 2.
	Wider []string
}

// widen reports whether c must be made again after this reply, and changes its keys.
func (c *Command) widen(reply []int64) bool {
	if len(reply) != 2 || reply[0] <= 0 || reply[1] != 0 {
		return false
	}
	return c.widenKeys()
}

func (c *Command) widenKeys() bool {
	if c.Wider == nil {
		return false
	}
	c.Keys, c.Wider = c.Wider, nil
	return true
}

// run sends c once and waits for its reply until ctx ends.
func (s *Session) run(ctx context.Context, c Command) rueidis.RedisResult {
	if s.suspect.Load() {
		return s.runMulti(ctx, []Command{c})[0]
	}
	r := s.client.Do(ctx, s.evalsha(c))
	if isNoScript(r) {
		r = s.client.Do(ctx, s.eval(c))
	}
	s.heard(r)
	return r
}

// numbers appends the elements of a reply to buf, which may be on the caller's stack: the
// replies of scripts are short, and there is one for each operation.
func numbers(buf []int64, r rueidis.RedisResult) ([]int64, error) {
	elements, err := r.ToArray()
	if err != nil {
		return nil, err
	}
	for i := range elements {
		n, err := elements[i].AsInt64()
		if err != nil {
			return nil, err
		}
		buf = append(buf, n)
	}
	return buf, nil
}

// heard notes whether the connection is in order, by an answer or its lack.
func (s *Session) heard(r rueidis.RedisResult) {
	err := r.Error()
	if _, fromRedis := rueidis.IsRedisErr(err); err == nil || fromRedis {
		if s.suspect.Load() {
			s.suspect.Store(false)
		}
	} else if !isCtxErr(err) {
		s.suspect.Store(true)
	}
}

// runMulti sends many commands in one pipeline; the i-th result is that of cs[i].
//
// While rueidis connects anew, whoever calls it waits for that whatever his context
// says (mux._pipe waits for the one that dials). So as long as the connection is in
// doubt the call has a goroutine of its own, which may end later than ctx.
func (s *Session) runMulti(ctx context.Context, cs []Command) []rueidis.RedisResult {
	if !s.suspect.Load() {
		return s.sendMulti(ctx, cs)
	}
	answer := make(chan []rueidis.RedisResult, 1)
	s.background.Go(func() { answer <- s.sendMulti(ctx, cs) })
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

func (s *Session) sendMulti(ctx context.Context, cs []Command) []rueidis.RedisResult {
	cmds := make(rueidis.Commands, len(cs))
	for i, c := range cs {
		cmds[i] = s.evalsha(c)
	}
	results := s.client.DoMulti(ctx, cmds...)
	s.heard(results[0])
	var again []int
	for i, r := range results {
		if isNoScript(r) {
			again = append(again, i)
		}
	}
	if again == nil {
		return results
	}
	cmds = cmds[:0]
	for _, i := range again {
		cmds = append(cmds, s.eval(cs[i]))
	}
	for j, r := range s.client.DoMulti(ctx, cmds...) {
		results[again[j]] = r
	}
	return results
}

func (s *Session) evalsha(c Command) rueidis.Completed {
	return s.client.B().Evalsha().Sha1(c.Script.sha).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

func (s *Session) eval(c Command) rueidis.Completed {
	return s.client.B().Eval().Script(c.Script.src).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()
}

func isNoScript(r rueidis.RedisResult) bool {
	re, ok := rueidis.IsRedisErr(r.Error())
	return ok && re.IsNoScript()
}

// loadScripts tells every node the scripts. It is a courtesy: where it fails, the
// first use of a script sends it whole.
func (s *Session) loadScripts(ctx context.Context) {
	scripts.Lock()
	all := scripts.all
	scripts.Unlock()
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	for _, node := range s.client.Nodes() {
		cmds := make(rueidis.Commands, 0, len(all))
		for _, sc := range all {
			cmds = append(cmds, node.B().ScriptLoad().Script(sc.src).Build())
		}
		for _, r := range node.DoMulti(ctx, cmds...) {
			if err := r.Error(); err != nil {
				s.log.Debug("relock: SCRIPT LOAD refused; scripts will be sent whole once", "error", err)
				break
			}
		}
	}
}
