package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"
)

// readPermits decodes a semaphore. Its key alone is an integer like any other: only permits
// that are out tell it from one.
func (l *Lock) readPermits(now int64, value, taken rueidis.RedisResult) {
	free, err := value.AsInt64()
	if err != nil {
		return
	}
	l.Free = &free
	scores, err := taken.AsZScores()
	if err != nil || len(scores) == 0 {
		return
	}
	l.Kind = kindSemaphore
	l.addPermits(now, scores)
}

// addPermits groups permits by owner.
func (l *Lock) addPermits(now int64, scores []rueidis.ZScore) {
	at := map[string]int{}
	for _, z := range scores {
		id, mark := permitOwner(z.Member)
		ttl := int64(z.Score) - now
		l.TTL = max(l.TTL, ttl)
		if i, ok := at[id]; ok {
			l.Owner[i].Holds++
			continue
		}
		at[id] = len(l.Owner)
		l.Owner = append(l.Owner, Owner{ID: id, Holds: 1, TTL: ttl, mark: mark})
	}
	l.Count = len(l.Owner)
}

// countPermits adds the limits of semaphores. Permits that have expired count as free,
// although they are given back by the next command only.
func (s *server) countPermits(ctx context.Context, from string, locks []*Lock) error {
	var of []*Lock
	var cmds rueidis.Commands
	for _, l := range locks {
		if l.Kind == kindSemaphore {
			of = append(of, l)
			permits := s.style.Suffix(l.Name, "timeout")
			cmds = append(cmds, s.client.B().Zcard().Key(permits).Build(),
				s.client.B().Zcount().Key(permits).Min(from).Max("+inf").Build())
		}
	}
	if len(of) == 0 {
		return nil
	}
	replies := s.client.DoMulti(ctx, cmds...)
	for i, l := range of {
		taken, err1 := replies[2*i].AsInt64()
		live, err2 := replies[2*i+1].AsInt64()
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("read %q: %w", l.Name, err)
		}
		limit := *l.Free + taken
		free := limit - live
		l.Limit, l.Free = &limit, &free
	}
	return nil
}
