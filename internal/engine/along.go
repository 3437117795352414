package engine

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// How an attempt takes along what an UnlockAsync has left to be sent: see async.go.

// takeAlong takes the departures of the lock that were not sent yet, for an attempt that is about to be sent. Those
// that were are away.
func (l *lock) takeAlong() (along, away []*departure) {
	all, _ := l.departures()
	for _, d := range all {
		if l.s.cleanup.Take(&d.job) {
			d.mine = true
			along = append(along, d)
		} else {
			away = append(away, d)
		}
	}
	return along, away
}

// putBack has departures leave after all that were taken along, but for those that were sent.
func (l *lock) putBack(along []*departure) {
	for _, d := range along {
		if d.mine {
			d.mine, d.followed = false, false
			l.s.cleanup.Return(&d.job, nil)
		}
	}
}

// follows reports whether the caller in front can ask although a claim of its session holds the lock: that is being
// released, and the release can be taken along.
func (a *acquisition) follows() bool {
	l := a.lock
	if !l.releases() {
		return false
	}
	along, _ := l.takeAlong()
	if slices.ContainsFunc(along, func(d *departure) bool { return d.c == l.holder }) {
		a.along = along
		return true
	}
	l.putBack(along)
	return false
}

// releases reports whether the claim that holds the lock is being released while it has departures.
func (l *lock) releases() bool { return l.leaving && l.holder != nil && l.holder.state == releasing }

// awaitAway has a TryLock wait for the departures that are away already and that it may be refused for. Others it
// takes along. The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) awaitAway() error {
	l := a.lock
	_, last := l.departures()
	for l.leaving {
		along, away := l.takeAlong()
		i := slices.IndexFunc(away, func(d *departure) bool {
			return d.number <= last && (d.inner != nil || a.kind.Exclusive || d.c.kind.Exclusive || a.kind.Permits)
		})
		if i < 0 {
			a.along = along
			return nil
		}
		l.putBack(along)
		d := away[i]
		if d.gone == nil {
			d.gone = make(chan struct{})
		}
		gone := d.gone
		l.unlock()
		ctx, cancel := a.bounded(a.ctx, a.queued)
		answered := false
		select {
		case <-gone:
			answered = true
		case <-ctx.Done():
		}
		cancel()
		var err error
		if !answered {
			err = a.ended()
		}
		l.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// bring takes along what has not left yet, for the attempt that is about to be sent. What it returns is to be
// deferred: it has leave what was not sent after all, also if code of the caller's context has ended the goroutine.
func (a *acquisition) bring() (end func()) {
	l := a.lock
	if a.along == nil {
		a.along, _ = l.takeAlong()
	}
	along := a.along
	for _, d := range along {
		d.followed = l.queue.First == &a.node
	}
	return func() {
		a.along = nil
		l.putBack(along)
	}
}

// sendBehind sends an attempt behind the departures that it takes along, and takes in their answers. It runs the
// hooks: no mutex may be held.
func (s *Session) sendBehind(ctx context.Context, along []*departure, cmd script.Command) rueidis.RedisResult {
	if err := ctx.Err(); err != nil {
		return rueidis.NewErrorResult(err)
	}
	var cmds []script.Command
	for _, d := range along {
		cmds = append(cmds, d.job.Cmds...)
	}
	results := s.redis.Run.InOrder(ctx, append(cmds, cmd))
	for _, d := range along {
		n := len(d.Cmds)
		d.mine = false
		s.cleanup.Return(&d.job, results[:n])
		results = results[n:]
	}
	return results[0]
}
