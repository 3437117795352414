package rlock

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Hold is one successful Lock. Each nested Lock gives a Hold of its own; the lock is
// free when all of an owner's Holds are unlocked, in any order. A Hold is a value,
// not bound to the goroutine that got it: it may be unlocked from any other. Safe
// for concurrent use.
type Hold struct {
	t      *tenure
	part   uint8
	auto   bool          // the watchdog renews it
	done   bool          // unlocked
	ranOut bool          // its fixed lease is over
	began  time.Duration // when its acquisition was sent
	until  time.Duration // fixed lease: its end
	end    time.Duration // fixed lease: until when it may be trusted
	token  int64
	id     string                  // of the hold in Redis; "" for the one an owner entered with
	cancel context.CancelCauseFunc // of its own context; nil if it has none
}

// Owner returns the owner as it stands in the lock's hash; where the lock was handed over
// in memory, a moment later. Like OwnerFrom it makes the owner known; see there.
func (h *Hold) Owner() string {
	if h.t.host != nil {
		return h.t.host.owner.id
	}
	h.t.owner.tell()
	return h.t.owner.id
}

// Token returns the fencing token: a number greater than that of every earlier
// acquisition of the name, the same for all nested holds of one owner; 0 unless the
// mutex is [Fenced]. Send it along with every write to the resource that the lock
// protects, and let the resource refuse a number lower than the highest it has
// seen: that stops a holder that was paused past its lease (Martin Kleppmann, "How
// to do distributed locking", 2016). It grows as long as Redis keeps its data: a
// failover to a replica that had not yet received a token can repeat it.
func (h *Hold) Token() int64 { return h.token }

// Remaining returns for how long the hold can surely be trusted without another
// word from Redis, by this process's monotonic clock; 0 when it has ended. For a
// hold that the watchdog renews it starts anew with each renewal.
func (h *Hold) Remaining() time.Duration {
	s := h.t.s
	s.mu.Lock()
	defer s.unlock()
	if h.done || h.ranOut || h.t.state != holding {
		return 0
	}
	end := h.t.trust
	if !h.auto {
		end = min(end, h.end)
	}
	return max(0, end-s.now())
}

// Unlock releases this hold. When it is the owner's last, the critical section's
// context ends with the cause [ErrReleased] and the lock is free, or has passed to the next
// goroutine of the session that waits for it. It works although the context is done, and
// blocks for one round trip, at most Config.ReleaseTimeout (or an eighth less); not at all
// if the lock passes on in memory, or other readers keep the hold that is shared.
//
// Errors: [ErrNotHeld] for a second call; [ErrLost] if the lock was gone before, as far as
// is known: where it does not block, Redis is not asked;
// [ErrClosed] after the session was closed; else the client's error when no answer
// came in time: the release then goes on in the background until Redis confirms it
// or the lease is over. After any error the hold is not held any more, and nobody
// who has taken the lock since is touched.
func (h *Hold) Unlock() error {
	s := h.t.s
	err := h.unlock()
	s.cfg.Trace.released(h.t.prim.Name(), h.t.owner.id, s.now()-h.began, err)
	if err != nil {
		return opError("unlock", h.t.prim, err)
	}
	return nil
}

// Extend gives a hold with a fixed lease a new end: d from now, at least 1 ms (else
// [ErrArgument]), sooner or later than the old one. The lock itself stays for as
// long as the longest of the owner's holds. It blocks for one round trip, until ctx
// ends or the hold does.
//
// Errors: [ErrArgument] also for a hold without a fixed lease, which the watchdog
// extends; [ErrNotHeld] after Unlock; [ErrLost] if the hold has run out or the lock
// is gone; [ErrClosed]; ctx's error or the client's, after which the end may have
// been moved or not, and the hold is trusted only until the earlier of the two.
func (h *Hold) Extend(ctx context.Context, d time.Duration) error {
	var err error
	switch {
	case ctx == nil:
		err = fmt.Errorf("%w: ctx is nil; use context.Background()", ErrArgument)
	case d < time.Millisecond || d > longest:
		err = fmt.Errorf("%w: Extend by %v; it must be at least 1ms and at most %v", ErrArgument, d, longest)
	case h.auto:
		err = fmt.Errorf("%w: Extend of a hold that the watchdog renews; it is for fixed leases", ErrArgument)
	default:
		err = h.extend(ctx, d)
	}
	if err != nil {
		return opError("extend", h.t.prim, err)
	}
	return nil
}

func (h *Hold) extend(ctx context.Context, d time.Duration) error {
	t, s := h.t, h.t.s
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := ctx.Err(); err != nil {
		return ctxError(ctx)
	}
	s.mu.Lock()
	if err := t.waitTurn(ctx); err != nil {
		return err
	}
	if err := h.standing(); err != nil {
		s.unlock()
		return err
	}
	if t.host != nil { // the session keeps the lock, for as long as this hold lasts
		if t.stands(); h.standing() != nil {
			err := h.standing()
			s.unlock()
			return err
		}
		h.until, h.end = s.now()+d, s.now()+s.trustIn(d)
		s.reschedule(t)
		s.unlock()
		return nil
	}
	pt := &t.parts[h.part]
	op := Op{Owner: t.owner.id, Lease: d, ByID: pt.byID, IDs: slices.Clone(pt.ids)}
	if t.auto() == 0 {
		op.Holds = pt.told()
	}
	for _, other := range t.fixed {
		if other != h && other.until > s.now()+d {
			op.Lease = other.until - s.now()
		}
	}
	// Until the answer is here only what holds either way may be trusted.
	if early := s.now() + s.trustIn(d); op.Holds > 0 && early < h.end {
		h.end = early
		s.reschedule(t)
	}
	t.busy = true
	s.unlock()

	held, sent, err := s.sendExtend(ctx, t, pt.prim.Extend(&op))

	s.mu.Lock()
	defer s.unlock()
	defer t.passTurn()
	switch {
	case err != nil:
		return err
	case t.state == ended:
		return s.endedErr(t)
	case held == 0:
		t.lose("it was gone when it was extended")
		return ErrLost
	}
	h.until, h.end = sent+d, sent+s.trustIn(d)
	if op.Holds > 0 {
		t.trust = sent + s.trustIn(op.Lease)
	} else {
		t.trust = max(t.trust, sent+s.trustIn(op.Lease))
	}
	t.renewAt = min(t.renewAt, s.nextLook(t, sent))
	s.reschedule(t)
	return nil
}

// sendExtend sends the script until it is answered, ctx ends, or the tenure does.
func (s *Session) sendExtend(ctx context.Context, t *tenure, cmd Command) (held int64, sent time.Duration, err error) {
	for n := 0; ; n++ {
		sent = s.now()
		held, err = s.run(ctx, cmd).AsInt64()
		if held == 2 && cmd.widenKeys() {
			continue
		}
		if err == nil || ctx.Err() != nil || classify(err) == refused {
			return held, sent, err
		}
		s.mu.Lock()
		over := t.state == ended
		s.unlock()
		if over || pause(ctx, n) != nil {
			return held, sent, err
		}
	}
}

// standing returns why the hold does not hold, or nil. Session.mu must be held.
func (h *Hold) standing() error {
	switch {
	case h.done:
		return ErrNotHeld
	case h.t.state == ended:
		return h.t.s.endedErr(h.t)
	case h.ranOut:
		return ErrLost
	}
	return nil
}

// ownContext gives a nested hold with a fixed lease a context of its own, since it
// may end before the tenure. Session.mu must be held.
func (h *Hold) ownContext(ctx context.Context) context.Context {
	if h.auto {
		return ctx
	}
	own, cancel := context.WithCancelCause(ctx)
	h.cancel = cancel
	return own
}

// endContext ends the hold's own context, if it has one.
func (h *Hold) endContext(cause error) {
	if h.cancel != nil {
		h.cancel(cause)
	}
}

// runOut ends a hold whose fixed lease is over. Session.mu must be held.
func (h *Hold) runOut() {
	h.ranOut = true
	h.t.parts[h.part].live--
	h.endContext(ErrLost)
}
