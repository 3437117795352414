package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// readAtOnce is how many locks one batch of commands is about.
const readAtOnce = 200

func newList(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List the locks that are held",
		Long: `List the locks that are held, with their owners and waiters.

PATTERN is a glob as Redis takes it (orders:*). ls goes through the keys with SCAN, on all
masters of a Cluster, and never blocks Redis. A semaphore is listed while permits are out.
A counter cannot be told from another integer, and is not listed; a latch is while it is
waited for.

HELD FOR is how long the owner has held the lock, as far as it is known: at least since the
lease was last renewed, and no longer than its process has been running.

"may be kept" stands at an owner whose session keeps the lock between its sections (rlock.Keep
in Go): whether it is inside at the moment only that session knows. It gives the lock back when
another one wants it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := "*"
			if len(args) > 0 {
				pattern = args[0]
			}
			return list(g, cmd, pattern)
		},
	}
}

func list(g *global, cmd *cobra.Command, pattern string) error {
	ctx, stop := g.interruptible()
	defer stop()
	s, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	names, err := scanAll(ctx, s.client, pattern)
	if err != nil {
		return err
	}
	locks, denied := []*Lock{}, 0
	for part := range slices.Chunk(names, readAtOnce) {
		some, err := s.read(ctx, part)
		if err != nil {
			return err
		}
		for _, l := range some {
			if l.denied != nil {
				denied++
			}
		}
		locks = append(locks, slices.DeleteFunc(some, func(l *Lock) bool { return !l.held() })...)
	}
	if denied > 0 {
		g.note(count(denied, "key was", "keys were") + " left out: the ACL does not let this user read them; give a PATTERN that it allows")
	}
	if locks, err = s.addLatches(ctx, locks, pattern); err != nil {
		return err
	}
	if _, err := s.elections(ctx, locks); err != nil {
		return err
	}
	slices.SortFunc(locks, func(a, b *Lock) int { return strings.Compare(a.Name, b.Name) })
	if _, err := s.countWaiters(ctx, locks); err != nil {
		return err
	}
	s.label(ctx, locks)
	if g.json {
		return writeJSON(cmd.OutOrStdout(), locks)
	}
	rows := [][]string{{"NAME", "KIND", "HOLDS", "TTL", "WAITING", "HELD FOR", "HELD BY"}}
	for _, l := range locks {
		rows = append(rows, []string{
			printable(l.Name), l.kindText(), cmp.Or(limitText(l), strconv.FormatInt(l.holds(), 10)),
			left(l.TTL), strconv.FormatInt(l.waiters(), 10), l.heldFor(), whoHolds(l),
		})
	}
	fit(rows, terminalWidth(), 0, 6)
	return table(cmd.OutOrStdout(), rows)
}

// addLatches adds the latches that are waited for. Others cannot be told from other integers.
func (s *server) addLatches(ctx context.Context, locks []*Lock, pattern string) ([]*Lock, error) {
	names, _, err := awaitedLatches(ctx, s.client)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !glob(pattern).matches(name) })
	slices.Sort(names)
	for part := range slices.Chunk(slices.Compact(names), readAtOnce) {
		some, err := s.read(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, l := range some {
			if l.Kind == "" && l.Free != nil {
				l.asLatch()
				locks = append(locks, l)
			}
		}
	}
	return locks, nil
}

// limitText prints how many permits of how many are out, or "".
func limitText(l *Lock) string {
	if l.Limit == nil || l.Free == nil {
		return ""
	}
	return fmt.Sprintf("%d of %d", *l.Limit-*l.Free, *l.Limit)
}
