package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// Forced is what force prints.
type Forced struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Forced bool    `json:"forced"`
	Owners []Owner `json:"owners"` // those that held it just before
}

func newForce(g *global) *cobra.Command {
	var owner string
	cmd := &cobra.Command{
		Use:   "force NAME",
		Short: "End the holds of a lock, whichever process has them",
		Long: `End all holds of a mutex, fair lock or read-write lock, and let the next waiter in. Of a
semaphore, give back the permits of one owner: --owner, as relock show prints it.

WARNING: the holders of a lock are told at once, those of permits find out at their next
renewal; then their sections end. But code that does not watch its context works on, beside
the next holder. Look first: relock show NAME.

The exit code is 1 if nothing was held.`,
		Args: exactlyOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("owner") && owner == "" { // a variable that is not set, in a script
				return usage("--owner is empty; it must be an owner of permits, as relock show prints it")
			}
			ctx, stop := g.interruptible()
			defer stop()
			s, err := g.connect(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			forced, err := s.force(ctx, args[0], owner)
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
	cmd.Flags().StringVar(&owner, "owner", "", "whose permits of a semaphore are given back")
	return cmd
}

// force ends all holds of a lock, or gives the permits of an owner back.
func (s *server) force(ctx context.Context, name, owner string) (*Forced, error) {
	l, err := s.inspect(ctx, name)
	if err != nil {
		return nil, err
	}
	switch {
	case l.Kind == kindCounter && owner == "":
		return nil, usage("%q is a counter, or a semaphore with no permits out; force is for locks that are held", name)
	case l.Kind == kindLatch:
		return nil, usage("%q is a latch, which nobody holds: count it down in a program that knows the right number", name)
	case l.Kind == kindSemaphore && owner == "":
		return nil, usage("%q is a semaphore; force gives back the permits of one owner: --owner, as relock show prints it", name)
	case owner != "" && (l.Kind == kindMutex || l.Kind == kindRW):
		return nil, usage("%q is a %s, of which force ends all holds; --owner is for semaphores", name, l.Kind)
	case owner != "":
		return s.forcePermits(ctx, l, owner)
	}
	if _, err := s.elections(ctx, []*Lock{l}); err != nil {
		return nil, err
	}
	s.label(ctx, []*Lock{l})
	forced := &Forced{Name: name, Kind: l.Kind, Owners: l.Owner}
	switch l.Kind {
	case kindMutex, kindElection:
		forced.Forced, err = rlock.New(s.session, name).ForceUnlock(ctx)
	case kindRW:
		forced.Forced, err = rwlock.New(s.session, name).ForceUnlock(ctx)
	}
	return forced, err
}

// forcePermits gives the permits of an owner back, all or none.
func (s *server) forcePermits(ctx context.Context, l *Lock, owner string) (*Forced, error) {
	forced := &Forced{Name: l.Name, Kind: l.Kind, Owners: []Owner{}}
	now, scores, err := s.permits(ctx, l.Name)
	if err != nil {
		return nil, err
	}
	var ids []string
	var taken []rueidis.ZScore
	for _, z := range scores {
		if id, _ := permitOwner(z.Member); id == owner {
			ids = append(ids, hex.EncodeToString([]byte(z.Member)))
			taken = append(taken, z)
		}
	}
	if len(ids) == 0 {
		return forced, nil
	}
	// The limit is that in Redis: this one is for a semaphore that does not exist.
	err = semaphore.New(s.session, l.Name, len(ids)).ReleaseByID(ctx, ids...)
	if errors.Is(err, rlock.ErrNotHeld) { // they were given back in the meantime
		return forced, nil
	}
	if err != nil {
		return nil, err
	}
	l.Owner = nil
	l.addPermits(now, taken)
	s.label(ctx, []*Lock{l})
	forced.Forced, forced.Owners = true, l.Owner
	return forced, nil
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
