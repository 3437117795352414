package gocron

import (
	"context"
	"errors"

	"github.com/go-co-op/gocron/v2"

	"relock/election"
)

// ErrNotLeader is what the elector of a process says that does not lead.
var ErrNotLeader = errors.New("gocron: this process does not lead")

// NewElector returns what gocron.WithDistributedElector takes. A scheduler runs jobs while the session of
// e leads ([election.Election.IsLeader]), which costs no round trip. It does not stand for election: the
// application does, with [election.Election.Run] or Campaign, and resigns when its scheduler has shut down. With
// a nil election no process leads. A scheduler that has an elector asks no locker.
func NewElector(e *election.Election) gocron.Elector { return elector{e} }

type elector struct{ e *election.Election }

// IsLeader is for gocron.
func (x elector) IsLeader(context.Context) error {
	if !x.e.IsLeader() {
		return ErrNotLeader
	}
	return nil
}
