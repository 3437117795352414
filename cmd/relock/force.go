package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"relock/fairlock"
	"relock/rlock"
	"relock/rwlock"
)

// Forced is what force prints.
type Forced struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Forced bool    `json:"forced"`
	Owners []Owner `json:"owners"` // those that held it just before
}

func newForce(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "force NAME",
		Short: "End the holds of a lock, whichever process has them",
		Long: `End all holds of a mutex, fair lock or read-write lock, and let the next waiter in.

WARNING: the holders are told at once, and their sections end. But code that does not watch
its context works on, beside the next holder. Look first: relock show NAME.

The exit code is 1 if nothing was held. Permits of a semaphore cannot be forced: those of a
process that died come back when their lease is over.`,
		Args: exactlyOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := interruptible()
			defer stop()
			s, err := g.connect(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			forced, err := s.force(ctx, args[0])
			if err != nil {
				return err
			}
			if g.json {
				err = writeJSON(cmd.OutOrStdout(), forced)
			} else {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), forced)
			}
			if err == nil && !forced.Forced {
				err = &exitError{code: exitFound}
			}
			return err
		},
	}
}

// force ends all holds of a lock.
func (s *server) force(ctx context.Context, name string) (*Forced, error) {
	l, err := s.inspect(ctx, name)
	if err != nil {
		return nil, err
	}
	s.label(ctx, []*Lock{l})
	forced := &Forced{Name: name, Kind: l.Kind, Owners: l.Owner}
	switch l.Kind {
	case kindMutex:
		forced.Forced, err = s.forceMutex(ctx, name)
	case kindRW:
		forced.Forced, err = rwlock.New(s.session, name).ForceUnlock(ctx)
	case kindSemaphore, kindCounter:
		return nil, usage("%q is a %s, whose permits cannot be forced; force is for mutexes, fair locks and read-write locks", name, l.Kind)
	}
	return forced, err
}

// forceMutex lets the next waiter in: that of the fair queue, if there is one.
func (s *server) forceMutex(ctx context.Context, name string) (bool, error) {
	fair := fairlock.New(s.session, name)
	if queued, err := fair.Waiters(ctx); err == nil && queued > 0 {
		return fair.ForceUnlock(ctx)
	}
	return rlock.New(s.session, name).ForceUnlock(ctx)
}

func (f *Forced) String() string {
	if !f.Forced {
		return fmt.Sprintf("%s was not held", printable(f.Name))
	}
	var owners []string
	for _, o := range f.Owners {
		owners = append(owners, who(o))
	}
	return fmt.Sprintf("%s was taken from %s", printable(f.Name), strings.Join(owners, ", "))
}
