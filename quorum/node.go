package quorum

import (
	"context"
	"embed"
	"fmt"
	"time"

	"relock/internal/engine"
	"relock/internal/kind"
	"relock/internal/mutex"
	"relock/internal/script"
	"relock/rlock"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var acquireScript = script.Load(luaFiles, "lua/acquire.lua")

// voteKind is a plain mutex without the hand-over in memory: a vote that is passed on says nothing of
// the other votes. It is of the same family, so that votes and a plain mutex of that name exclude
// each other.
var voteKind = kind.Kind{Family: "mutex", Exclusive: true}

// A node is one of the Redises, and the primitive of its vote.
type node struct {
	*mutex.Primitive
	engine.Handle
	life   string // the key of the life of this Redis
	settle string // for how long a new life gives no votes
}

var (
	_ kind.Leased  = (*node)(nil)
	_ kind.Refuser = (*node)(nil)
)

// Kind is that of votes.
func (*node) Kind() *kind.Kind { return &voteKind }

// Acquire is acquire.lua.
func (n *node) Acquire(op *kind.Op) script.Command {
	return script.Command{
		Script: acquireScript, Keys: []string{n.Names().Key(), n.life},
		Args: []string{op.Owner, script.Millis(op.Lease), n.settle},
	}
}

// Never is the error of a Redis that gives no votes yet.
func (*node) Never(ms int64) error {
	return fmt.Errorf("%w: this Redis was restarted or is new, and may have forgotten votes; it gives none for another %v",
		rlock.ErrNotAcquired, time.Duration(ms)*time.Millisecond)
}

// ask asks for the vote. It blocks for at most bound. An unknown outcome is taken back in the
// background. A hold beside an error is a vote that came as the bound ended: the caller releases it.
func (n *node) ask(ctx context.Context, bound time.Duration, opts []rlock.LockOption) (context.Context, *engine.Hold, error) {
	ctx, cancel := context.WithCancel(ctx) // which ends the attempt, and else with the section
	late := time.AfterFunc(bound, cancel)
	section, hold, err := n.Lock(ctx, 1, false, opts)
	switch {
	case !late.Stop():
		err = fmt.Errorf("%w: no answer within %v", rlock.ErrUnavailable, bound)
	case err == nil:
		return section, hold, nil
	}
	cancel()
	return nil, hold, err
}
