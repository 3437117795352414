package engine

import (
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// A renewalRound is the questions that are sent together: whether each of many locks stands, and to keep it for one
// lease more. It does not know what follows from an answer. The zero value is empty, but most must be set.
type renewalRound struct {
	most int // how many elements of a reply one call is for

	calls []*renewalCall
	open  map[renewalKey]*renewalCall // those that may take more
}

// A renewalKey is what the questions of one call have in common.
type renewalKey struct {
	script *script.Script
	lease  time.Duration
	slot   int
}

type renewalCall struct {
	cmd   script.Command
	items []*renewalItem // one for each element of the reply
}

// add adds a question: keep what part says for a lease from now, 0 only asks. The reply will have an element for
// each of its Args. All keys of a call must be in one slot: in a Cluster slot is theirs.
func (r *renewalRound) add(item *renewalItem, lease time.Duration, slot int, part script.Command) {
	k := renewalKey{part.Script, lease, slot}
	c := r.open[k]
	if c == nil || len(c.items) >= r.most {
		c = &renewalCall{cmd: script.Command{Script: part.Script, Args: []string{script.Millis(lease)}}}
		if r.open == nil {
			r.open = map[renewalKey]*renewalCall{}
		}
		r.open[k] = c
		r.calls = append(r.calls, c)
	}
	c.cmd.Keys = append(c.cmd.Keys, part.Keys...)
	c.cmd.Args = append(c.cmd.Args, part.Args...)
	for range part.Args {
		c.items = append(c.items, item)
	}
}

// A renewalAnswer is that of one call, or why there is none.
type renewalAnswer struct {
	items []*renewalItem
	alive []int64 // for each item 1; 0: it is gone; -1: Redis does not allow the question
	err   error
}

// oneByOne reports whether Redis has refused the call because of some of its keys: each of the
// items may do better in a call of its own.
func (a *renewalAnswer) oneByOne() bool { return script.IsTryAgain(a.err) || script.Denied(a.err) }

// send sends all questions, by a function that sends commands in one pipeline.
func (r *renewalRound) send(send func([]script.Command) []rueidis.RedisResult) []renewalAnswer {
	if len(r.calls) == 0 {
		return nil
	}
	cmds := make([]script.Command, len(r.calls))
	for i, c := range r.calls {
		cmds[i] = c.cmd
	}
	answers := make([]renewalAnswer, len(cmds))
	for i, reply := range send(cmds) {
		a := renewalAnswer{items: r.calls[i].items}
		a.alive, a.err = reply.AsIntSlice()
		if a.err == nil && len(a.alive) != len(a.items) {
			a.err = script.ErrShape
		}
		answers[i] = a
	}
	return answers
}
