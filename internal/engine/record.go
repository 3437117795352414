package engine

import (
	"context"
	"sync/atomic"

	"github.com/redis/rueidis"

	"relock/internal/life"
	"relock/internal/record"
)

// ownRecord is the session's record in Redis.
type ownRecord struct {
	*record.Record
	due atomic.Int64 // when it is to be written again, as a time.Duration; never while it is
}

// recorded takes in the answer to the first writing. Where it is refused the session works without.
func (s *Session) recorded(r rueidis.RedisResult) {
	if err := s.record.Wrote(r); err != nil {
		s.record.due.Store(int64(never))
		s.notify(func() {
			s.cfg.Logger.Debug("relock: the session's record was not written", "key", s.record.Key, "error", err)
		})
		return
	}
	s.record.due.Store(int64(s.now() + s.record.Every()))
}

// keepRecord writes the record again.
func (s *Session) keepRecord() {
	ctx, cancel := context.WithTimeout(s.life.Context, s.cfg.ReleaseTimeout)
	defer cancel()
	if err := s.record.Rewrite(ctx, s.client); err != nil {
		s.notify(func() {
			s.cfg.Logger.Debug("relock: the session's record was not renewed", "key", s.record.Key, "error", err)
		})
	}
	due := s.now() + s.record.Every()
	s.record.due.Store(int64(due))
	s.schedule.WakeAt(due)
}

// dropRecord deletes the record, unless Redis does not answer: then its TTL does. The command
// has a goroutine of its own, since it may have to wait for a connection whatever ctx says.
func (s *Session) dropRecord() {
	if !s.record.Written() || s.cleanup.Unconfirmed() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	done := make(chan struct{})
	s.life.Background.Go(func() {
		defer close(done)
		defer cancel()
		_ = s.record.Delete(ctx, s.client)
	})
	life.Await(done, farewellTime)
}
