package engine

import (
	"context"
	"slices"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// How an attempt piggybacks the async releases of its lock, which are then sent in front of it: see async.go.

// takePending takes the async releases of the lock that were not sent yet, for an attempt that is about to be sent. It
// returns the others as sent.
func (l *lock) takePending() (pending, sent []*asyncRelease) {
	all, _ := l.s.async.all(l)
	for _, d := range all {
		if l.s.cleanup.Take(&d.job) {
			d.mine = true
			pending = append(pending, d)
		} else {
			sent = append(sent, d)
		}
	}
	return pending, sent
}

// returnPending gives async releases back to the clean-up that takePending took, but for those that were sent.
func (l *lock) returnPending(pending []*asyncRelease) {
	for _, d := range pending {
		if d.mine {
			d.mine, d.followed = false, false
			l.s.cleanup.Return(&d.job, nil)
		}
	}
}

// canPiggyback reports whether the caller in front can ask although a claim of its session holds the lock: the
// release of that claim is pending, and the attempt can piggyback it.
func (a *acquisition) canPiggyback() bool {
	l := a.lock
	if !l.releases() {
		return false
	}
	pending, _ := l.takePending()
	if slices.ContainsFunc(pending, func(d *asyncRelease) bool { return d.c == l.holder }) {
		a.piggyback = pending
		return true
	}
	l.returnPending(pending)
	return false
}

// releases reports whether the claim that holds the lock is being released.
func (l *lock) releases() bool { return l.holder != nil && l.holder.state == releasing }

// awaitSent has a TryLock wait for the async releases that were sent already and that it could be refused for. It
// piggybacks the others. The lock's mutex must be held; it is released meanwhile and held again at the end.
func (a *acquisition) awaitSent() error {
	l := a.lock
	_, last := l.s.async.all(l)
	for l.hasAsync {
		pending, sent := l.takePending()
		i := slices.IndexFunc(sent, func(d *asyncRelease) bool {
			return d.number <= last && (d.inner != nil || a.kind.Exclusive || d.c.kind.Exclusive || a.kind.Permits)
		})
		if i < 0 {
			a.piggyback = pending
			return nil
		}
		l.returnPending(pending)
		d := sent[i]
		if d.gone == nil {
			d.gone = make(chan struct{})
		}
		gone := d.gone
		l.unlock()
		a.undo = (*acquisition).quit
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
		a.undo = nil
		l.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// attachPending attaches the async releases that were not sent yet to the attempt that is about to be sent.
func (a *acquisition) attachPending() {
	l := a.lock
	if a.piggyback == nil {
		a.piggyback, _ = l.takePending()
	}
	for _, d := range a.piggyback {
		d.followed = l.queue.First == &a.node
	}
}

// detachPending gives back what was not sent with an attempt after all. The lock's mutex must be held.
func (a *acquisition) detachPending() {
	a.lock.returnPending(a.piggyback)
	a.piggyback = nil
}

// sendPiggyback sends an attempt behind the async releases that it piggybacks, and handles their answers. It runs the
// hooks: no mutex may be held.
func (s *Session) sendPiggyback(ctx context.Context, pending []*asyncRelease, cmd script.Command) rueidis.RedisResult {
	if err := ctx.Err(); err != nil {
		return rueidis.NewErrorResult(err)
	}
	var cmds []script.Command
	for _, d := range pending {
		cmds = append(cmds, d.job.Cmds...)
	}
	results := s.redis.Run.InOrder(ctx, append(cmds, cmd))
	for _, d := range pending {
		n := len(d.Cmds)
		d.mine = false
		s.cleanup.Return(&d.job, results[:n])
		results = results[n:]
	}
	return results[0]
}
