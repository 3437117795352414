package engine

import (
	"context"
	"time"
)

// acknowledged waits until Config.Replicas replicas have acknowledged what was granted, if
// anything was; see [replicas.Asker.Granted].
func (s *Session) acknowledged(ctx context.Context, g *grant, p Primitive, op *Op, trusted time.Duration) error {
	leased, ok := p.(Leased)
	if !ok || g.Status != granted { // what is not leased has no holder
		return nil
	}
	err := s.redis.Replicas.Granted(ctx, leased, op)
	if err == nil {
		err = s.late(*g, trusted)
	}
	g.asked = err != nil
	return err
}
