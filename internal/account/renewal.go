package account

import (
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// A Round is the questions that are sent together. T is what the session keeps of one of them. The
// zero value is empty, but Most must be set.
type Round[T any] struct {
	Most int // how many elements of a reply one call is for

	calls []*call[T]
	open  map[key]*call[T] // those that may take more
}

// A key is what the questions of one call have in common.
type key struct {
	script *script.Script
	lease  time.Duration
	slot   int
}

type call[T any] struct {
	cmd   script.Command
	items []*T // one for each element of the reply
}

// Add adds a question: keep what part says for a lease from now, 0 only asks. The reply will have an element for
// each of its Args. All keys of a call must be in one slot: in a Cluster slot is theirs.
func (r *Round[T]) Add(item *T, lease time.Duration, slot int, part script.Command) {
	k := key{part.Script, lease, slot}
	c := r.open[k]
	if c == nil || len(c.items) >= r.Most {
		c = &call[T]{cmd: script.Command{Script: part.Script, Args: []string{script.Millis(lease)}}}
		if r.open == nil {
			r.open = map[key]*call[T]{}
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

// An Answer is that of one call, or why there is none.
type Answer[T any] struct {
	Items []*T
	Alive []int64 // for each item 1; 0: it is gone; -1: Redis does not allow the question
	Err   error
}

// OneByOne reports whether Redis has refused the call because of some of its keys: each of the
// items may do better in a call of its own.
func (a *Answer[T]) OneByOne() bool { return script.IsTryAgain(a.Err) || script.Denied(a.Err) }

// Send sends all questions, by a function that sends commands in one pipeline.
func (r *Round[T]) Send(send func([]script.Command) []rueidis.RedisResult) []Answer[T] {
	if len(r.calls) == 0 {
		return nil
	}
	cmds := make([]script.Command, len(r.calls))
	for i, c := range r.calls {
		cmds[i] = c.cmd
	}
	answers := make([]Answer[T], len(cmds))
	for i, reply := range send(cmds) {
		a := Answer[T]{Items: r.calls[i].items}
		a.Alive, a.Err = reply.AsIntSlice()
		if a.Err == nil && len(a.Alive) != len(a.Items) {
			a.Err = script.ErrShape
		}
		answers[i] = a
	}
	return answers
}
