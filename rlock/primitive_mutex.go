package rlock

import (
	"fmt"
	"time"
)

// MutexPrimitive is the Primitive behind [Mutex]: Redisson's RLock, and RFencedLock if
// fenced. Kinds of lock that keep the same hash embed it and bring their own way of
// waiting. Names are built once, here.
type MutexPrimitive struct {
	Names
	channel string
	ids     string   // key of the ids of holds
	keys    []string // the lock and, if fenced, the token
	both    []string // the lock and the ids
}

// NewMutexPrimitive returns the primitive of that name. Errors: [ErrName], and
// [ErrArgument] for a nil session or option; what is returned with an error is good for
// its Name only.
func NewMutexPrimitive(s *Session, name string, opts ...MutexOption) (*MutexPrimitive, error) {
	var o mutexOptions
	var bad error
	for _, opt := range opts {
		if opt == nil {
			bad = fmt.Errorf("%w: a nil MutexOption", ErrArgument)
			continue
		}
		opt(&o)
	}
	names, err := s.Names(name)
	if err != nil {
		bad = err
	}
	return newMutexPrimitive(names, o.fenced), bad
}

func newMutexPrimitive(n Names, fenced bool) *MutexPrimitive {
	m := &MutexPrimitive{
		Names: n, channel: n.Prefixed("redisson_lock__channel"), ids: n.Prefixed("relock_holds"), keys: []string{n.Key()},
	}
	m.both = []string{n.Key(), m.ids}
	if fenced {
		m.keys = append(m.keys, n.Prefixed("redisson_lock_token"))
	}
	return m
}

// Channel is Redisson's: "redisson_lock__channel:{name}".
func (m *MutexPrimitive) Channel() string { return m.channel }

// Traits: it is exclusive, and handed over in memory unless each acquisition must draw a
// fencing token.
func (m *MutexPrimitive) Traits() Traits { return Traits{Exclusive: true, HandsOver: !m.Fenced()} }

// Part is the only one.
func (m *MutexPrimitive) Part() int { return 0 }

// LockKeys are the keys: the lock itself, the set of ids of its holds, and the fencing
// token, used or not.
func (m *MutexPrimitive) LockKeys() (lock, ids, token string) {
	return m.keys[0], m.ids, m.Prefixed("redisson_lock_token")
}

// Fenced reports whether acquisitions draw a token.
func (m *MutexPrimitive) Fenced() bool { return len(m.keys) > 1 }

// Acquire is acquire.lua, or acquire_by_id.lua.
func (m *MutexPrimitive) Acquire(op *Op) Command {
	if op.ID == "" {
		return Command{Script: acquireScript, Keys: m.keys, Args: []string{op.Owner, itoa(millis(op.Lease))}}
	}
	draw := "0" // an owner that enters draws anyway; the script knows whether it does
	if op.Draw && op.Holds > 0 {
		draw = "1"
	}
	return Command{
		Script: acquireByIDScript, Keys: append([]string{m.Key(), m.ids}, m.keys[1:]...),
		Args: []string{op.Owner, itoa(millis(op.Lease)), itoa(int64(op.Holds)), op.ID, draw},
	}
}

// Release is release.lua, or release_by_id.lua.
func (m *MutexPrimitive) Release(op *Op) Command {
	args := []string{op.Owner, m.channel, m.Publish(), itoa(int64(op.Holds)), itoa(millis(op.Keep))}
	if len(op.Ends) > 0 {
		args = append(append(args, itoa(int64(len(op.Ends)))), op.Ends...)
		return Command{Script: releaseByIDScript, Keys: m.both, Args: append(args, op.IDs...)}
	}
	args = append(append(args, op.IDs...), op.Also...)
	if op.ByID {
		return Command{Script: releaseScript, Keys: m.both, Args: args}
	}
	return Command{Script: releaseScript, Keys: m.keys[:1], Args: args, Wider: m.both}
}

// Transfer is transfer.lua.
func (m *MutexPrimitive) Transfer(from, to Entry, lease time.Duration) Command {
	return Command{
		Script: transferScript, Keys: m.both,
		Args: []string{from.Owner, to.Owner, itoa(millis(lease)), m.channel, m.Listeners()},
	}
}

// Extend is extend.lua.
func (m *MutexPrimitive) Extend(op *Op) Command {
	cmd := Command{Script: extendScript, Keys: m.both, Args: []string{op.Owner, itoa(millis(op.Lease)), itoa(int64(op.Holds))}}
	cmd.Args = append(cmd.Args, op.IDs...)
	if !op.ByID {
		cmd.Keys, cmd.Wider = m.keys[:1], m.both
	}
	return cmd
}

// State is state.lua.
func (m *MutexPrimitive) State() Command { return Command{Script: stateScript, Keys: m.keys[:1]} }

// ForceUnlock is force_unlock.lua.
func (m *MutexPrimitive) ForceUnlock(sessionChannel string) Command {
	return Command{Script: forceUnlockScript, Keys: m.keys[:1], Args: []string{m.channel, m.Publish(), sessionChannel}}
}

// Renew is renew.lua.
func (m *MutexPrimitive) Renew() *Script { return renewScript }

// RenewArgs are the lock and, if there are some, the ids that go along with it.
func (m *MutexPrimitive) RenewArgs(owner string, _ int, byID bool) (keys, args []string) {
	if byID {
		return m.both, []string{owner, ""}
	}
	return m.keys[:1], []string{owner}
}
