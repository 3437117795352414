package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"relock/election"
	"relock/internal/script"
	"relock/rlock"
)

// leaderPrefix begins the name of the key that has the leader of an election.
const leaderPrefix = "relock_leader"

// Leader is what the leader of an election has published.
type Leader struct {
	Term  int64  `json:"term"`
	Value string `json:"value"`
}

// elections tells elections from other locks: they leave a record of their leader. An election whose leader
// has not published yet has none. It returns how many commands that took.
func (s *server) elections(ctx context.Context, locks []*Lock) (sent int, err error) {
	var of []*Lock
	var cmds rueidis.Commands
	for _, l := range locks {
		if l.Kind == kindMutex || l.Kind == kindElection || l.Kind == "" && l.Free == nil {
			of = append(of, l)
			cmds = append(cmds, s.client.B().Hmget().Key(s.style.Prefix(leaderPrefix, l.Name)).Field("owner", "term", "value").Build())
		}
	}
	if len(of) == 0 {
		return 0, nil
	}
	for i, r := range s.client.DoMulti(ctx, cmds...) {
		reply, err := r.ToArray()
		if script.Unavailable(err) && !script.Denied(err) {
			return len(cmds), fmt.Errorf("read the leader of %q: %w", of[i].Name, err)
		}
		if err == nil && len(reply) == 3 && !reply[0].IsNil() {
			of[i].leads(reply)
		}
	}
	return len(cmds), nil
}

// leads takes in the record of an election's leader, which is true while that owner has the lock.
func (l *Lock) leads(reply []rueidis.RedisMessage) {
	l.Kind, l.Leader = kindElection, nil
	owner, _ := reply[0].ToString()
	if slices.ContainsFunc(l.Owner, func(o Owner) bool { return o.ID == owner }) {
		l.Leader = &Leader{}
		l.Leader.Term, _ = reply[1].AsInt64()
		l.Leader.Value, _ = reply[2].ToString()
	}
}

// Led is what leader prints.
type Led struct {
	Name  string `json:"name"`
	Owner string `json:"owner"`
	Leader
}

func newLeader(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "leader NAME",
		Short: "Print the value of an election's leader",
		Long: `Print the value that the leader of an election has published. The exit code is 1 if there is
no leader, or one that has not published yet: then nothing is printed on standard output.`,
		Example: `  psql --host "$(relock leader database)"`,
		Args:    exactlyOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := g.interruptible()
			defer stop()
			s, err := g.connect(ctx)
			if err != nil {
				return err
			}
			defer s.close()
			led, err := s.leader(ctx, args[0])
			switch {
			case err != nil:
				return err
			case g.json:
				return writeJSON(cmd.OutOrStdout(), led)
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), led.Value)
			return err
		},
	}
}

// leader asks who leads.
func (s *server) leader(ctx context.Context, name string) (*Led, error) {
	l, err := election.New(s.session, name).Leader(ctx)
	if errors.Is(err, election.ErrNoLeader) && !errors.Is(err, rlock.ErrUnavailable) {
		return nil, &exitError{exitFound, err}
	}
	if err != nil {
		return nil, err
	}
	return &Led{name, l.Owner, Leader{l.Term, l.Value}}, nil
}
