package semaphore

import (
	"context"
	"encoding/hex"
	"fmt"
	"relock/internal/inbox"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/calls"
	"relock/internal/engine"
	"relock/internal/idgen"
	"relock/internal/script"
	"relock/rlock"
)

var (
	releaseByIDScript = script.Load(luaFiles, "lua/release_by_id.lua")
	extendByIDScript  = script.Load(luaFiles, "lua/extend_by_id.lua")
)

// IDs returns the ids of the permits: 32 hex digits each, as Redisson's. Any process may release or
// extend a permit by its id, with [Semaphore.ReleaseByID] and [Semaphore.ExtendByID] or, in Java,
// with RPermitExpirableSemaphore's release and updateLeaseTime. Permits that are handed over in
// memory keep their ids.
func (p *Permits) IDs() []string {
	h := (*engine.Hold)(p)
	ids := idgen.AppendPermits(make([]string, 0, h.N()), h.Owner(), h.N())
	for i, id := range ids {
		ids[i] = hex.EncodeToString([]byte(id))
	}
	return ids
}

// ReleaseByID gives back the permits with these ids, all or none, whichever process got them: ids
// that [Permits.IDs] returned, or Redisson's acquire. A section of this module that has one of them
// ends with [rlock.ErrLost] at its next renewal, and its other permits are given back then.
//
// ReleaseByID blocks for one round trip, and tries again for at most Config.ReleaseTimeout while
// the answer is lost. Errors: [rlock.ErrNotHeld] if one of them has expired or was given back, and
// nothing was changed; [rlock.ErrArgument] if an id is not one, is given twice, or there is none;
// [ErrLimit] for more than [MaxAtOnce]. After [rlock.ErrUnavailable] all have been given back or
// none.
func (m *Semaphore) ReleaseByID(ctx context.Context, ids ...string) error {
	const op = "release by id"
	raw, err := m.decode(op, ids)
	if err != nil {
		return err
	}
	args := append([]string{m.p.Channel(), m.p.key.Publish, m.p.kept(0), m.p.key.Counts, inbox.Prefix}, raw...)
	cmd := script.Command{Script: releaseByIDScript, Keys: m.p.keysAndLine(), Args: args, Fewer: func(c script.Command) script.Command {
		c.Keys, c.Args, c.Fewer = c.Keys[:2:2], slices.Clone(c.Args), nil
		c.Args[4] = ""
		return c
	}}
	var done int64
	resent := false // then an earlier run may be why they are gone
	err = m.handle.Calls().Call(ctx, op, cmd, func(r rueidis.RedisResult) (err error) {
		if done, err = r.AsInt64(); err != nil && script.Classify(err) == script.Unknown {
			resent = true
		}
		return err
	})
	if err == nil && done == 0 && !resent {
		err = m.wrap(op, fmt.Errorf("%w: one of the permits has expired or was given back", rlock.ErrNotHeld))
	}
	return err
}

// ExtendByID gives the permits with these ids a new end: d from now, at least 1 ms, sooner or later
// than the old one; all or none, whichever process got them. Permits that their session renews are
// extended at the next renewal anyway, if d was less. It blocks and fails as
// [Semaphore.ReleaseByID] does. Of one session the last one wins, also if a copy of an earlier one
// arrives late.
func (m *Semaphore) ExtendByID(ctx context.Context, d time.Duration, ids ...string) error {
	const op = "extend by id"
	raw, err := m.decode(op, ids)
	if err == nil && d < time.Millisecond {
		err = m.wrap(op, fmt.Errorf("%w: d is %v; it must be at least 1ms", rlock.ErrArgument, d))
	}
	if err != nil {
		return err
	}
	keys := append(m.p.keys(), m.p.key.Prefixed("relock_extended")+":"+m.p.s.Requests().Client)
	for {
		var done int64
		err := m.handle.Calls().CallOnce(ctx, op, func(id string) script.Command {
			_, number := idgen.SplitRequest(id)
			args := append([]string{script.Millis(d), m.p.kept(d), number, script.Millis(m.p.s.Config().RequestMemory())}, raw...)
			return script.Command{Script: extendByIDScript, Keys: keys, Args: args}
		}, calls.Integer(&done))
		switch {
		case err != nil:
			return err
		case done == 0:
			return m.wrap(op, fmt.Errorf("%w: one of the permits has expired or was given back", rlock.ErrNotHeld))
		case done == 1:
			return nil
		}
		// A call of another goroutine that began later came before this one.
	}
}

// decode returns ids as they stand in Redis.
func (m *Semaphore) decode(op string, ids []string) (raw []string, err error) {
	if err := m.usable(op); err != nil {
		return nil, err
	}
	switch {
	case len(ids) == 0:
		return nil, m.wrap(op, fmt.Errorf("%w: no ids; pass at least one", rlock.ErrArgument))
	case len(ids) > MaxAtOnce:
		return nil, m.wrap(op, fmt.Errorf("%w: %d ids; one call is for at most %d", ErrLimit, len(ids), MaxAtOnce))
	}
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		b, err := hex.DecodeString(id)
		switch {
		case err != nil || len(b) != idgen.PermitSize:
			err = fmt.Errorf("%w: the id is %.40q; it must be %d hex digits", rlock.ErrArgument, id, 2*idgen.PermitSize)
		case seen[string(b)]:
			err = fmt.Errorf("%w: the id %s is given twice", rlock.ErrArgument, id)
		}
		if err != nil {
			return nil, m.wrap(op, err)
		}
		seen[string(b)] = true
		raw = append(raw, string(b))
	}
	return raw, nil
}
