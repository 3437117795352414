package election

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/api"
	"relock/internal/clock"
	"relock/internal/engine"
	"relock/internal/keyname"
	"relock/internal/script"
	"relock/rlock"
)

//go:embed lua/*.lua
var luaFiles embed.FS

var (
	publishScript = script.Load(luaFiles, "lua/publish.lua")
	leaderScript  = script.Load(luaFiles, "lua/leader.lua")
)

// ErrNoLeader: there is no leader at the moment, or a new one has not published its value yet.
var ErrNoLeader = errors.New("election: no leader")

// Election is a contest under one name among all processes that use the same Redis. It is a
// handle: made without I/O, and as good as any other of the same name and session. Safe for
// concurrent use.
type Election struct {
	lock   *fairlock.Mutex
	handle engine.Handle
	names  *keyname.Names
}

// New returns the election with that name. It does no I/O and does not fail: the first operation
// reports an empty name ([rlock.ErrName]) or a nil session ([rlock.ErrArgument]).
func New(s *rlock.Session, name string) *Election {
	session := (*engine.Session)(s)
	names, err := session.Names(name)
	return &Election{
		lock:   fairlock.New(s, name, rlock.Fenced()),
		handle: engine.NewHandle(session, &names, nil, err), names: &names,
	}
}

// Name returns the name that New was given, without Config.Prefix; "" for a nil or zero Election.
func (e *Election) Name() string {
	if e == nil || e.lock == nil {
		return ""
	}
	return e.names.Name()
}

// Session returns the session that New was given; nil for a nil or zero Election.
func (e *Election) Session() *rlock.Session {
	if e == nil || e.lock == nil {
		return nil
	}
	return e.lock.Session()
}

// Campaign waits until the caller leads, and publishes value for it. Candidates are served in
// the order of arrival.
//
// The returned context ends when the leadership does, with a cause ([context.Cause]):
// [rlock.ErrLost] when it is lost, [rlock.ErrClosed] when the session closes, [rlock.ErrReleased]
// after [Leadership.Resign]. It is derived from ctx. The leadership is renewed for as long as ctx
// lives; when that ends and no Resign follows, it ends one lease later. On the context of its own
// leadership Campaign re-enters: the term stays, the value is the new one, and the leadership
// ends with the last Resign.
//
// Campaign blocks until it leads and the value is published, or ctx ends; [rlock.Wait] bounds
// the waiting, but a value has the time of a TryLock to be published. Errors are those of
// [rlock.Mutex.Lock]: [rlock.ErrNotAcquired] when the wait is over; and [rlock.ErrArgument] if
// ctx names an owner ([rlock.WithOwner]), since two candidates of one name would lead together. On error
// the returned context is ctx, the leadership is nil, and the caller neither leads nor stands for election:
// what was granted is released in the background if ctx has ended or Redis does not answer.
func (e *Election) Campaign(ctx context.Context, value string, opts ...rlock.LockOption) (context.Context, *Leadership, error) {
	const op = "campaign"
	if err := e.usable(ctx, op); err != nil {
		return ctx, nil, err
	}
	if id, named := rlock.OwnerFrom(ctx); named {
		return ctx, nil, e.wrap(op, fmt.Errorf("%w: ctx names the owner %q; a candidate is private: use rlock.WithoutOwner", rlock.ErrArgument, id))
	}
	p := newPatience(ctx, opts)
	var last error // of the leadership before, which was lost
	for n := 0; ; n++ {
		section, hold, err := e.lock.Lock(ctx, p.opts...)
		if ended := ctx.Err(); last != nil && ended != nil && errors.Is(err, ended) && !errors.Is(err, rlock.ErrNotAcquired) {
			// For Lock ctx had ended before the call; for the caller it has ended the wait.
			err = e.wrap("lock", api.NotAcquired(api.OfContext(ctx), last))
		}
		if err != nil {
			return ctx, nil, fmt.Errorf("%s: %w", op, err)
		}
		l := &Leadership{election: e, hold: hold}
		if err = p.publish(section, l, value); err == nil {
			if p.atLeast > 0 {
				(*engine.Hold)(hold).StandAtLeast(p.atLeast)
			}
			l.forget = living.begin(e.seat(), reign{section, l})
			return section, l, nil
		}
		lost := errors.Is(err, rlock.ErrLost) || section.Err() != nil
		if ctx.Err() != nil || section.Err() == nil && errors.Is(err, rlock.ErrUnavailable) && !script.Denied(err) {
			hold.UnlockAsync() // a caller whose wait is over does not wait for a Redis that may be silent
		} else {
			_ = hold.Unlock()
		}
		switch {
		case errors.Is(err, rlock.ErrClosed):
			return ctx, nil, err
		case lost && ctx.Err() == nil && !p.over():
			last = err
			_ = clock.Pause(ctx, n) // if ctx ends it, Lock says so
			p.next()
		case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
			return ctx, nil, fmt.Errorf("%w: %w: %w", rlock.ErrNotAcquired, ctx.Err(), err)
		case lost || ctx.Err() != nil || p.waits && p.over():
			return ctx, nil, fmt.Errorf("%w: %w", rlock.ErrNotAcquired, err)
		default:
			return ctx, nil, err
		}
	}
}

// Leader is who leads, as the leader has published it.
type Leader struct {
	Owner string // the candidate as it stands in Redis: "<session id>:<number>"
	Term  int64  // grows from leader to leader
	Value string // what the leader has published last
}

// Leader asks Redis who leads, and with which value. It blocks for one round trip, and tries again
// for at most Config.ReleaseTimeout while there is no answer. The answer may be out of date when it
// returns. Errors: [ErrNoLeader]; [rlock.ErrArgument], [rlock.ErrName], [rlock.ErrClosed],
// [rlock.ErrUnavailable]; ctx's or Redis's own.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	const op = "leader"
	if err := e.usable(ctx, op); err != nil {
		return Leader{}, err
	}
	l, _, err := e.look(ctx, op)
	if err == nil && l.Owner == "" {
		err = e.wrap(op, ErrNoLeader)
	}
	return l, err
}

// look asks Redis who leads: the zero Leader if nobody does, or if the leader has not published its
// value yet, which unpublished tells.
func (e *Election) look(ctx context.Context, op string) (l Leader, unpublished bool, err error) {
	cmd := script.Command{Script: leaderScript, Keys: e.keys()}
	err = e.handle.Calls().Call(ctx, op, cmd, func(r rueidis.RedisResult) error {
		reply, err := r.ToArray()
		l, unpublished = Leader{}, len(reply) == 1
		switch {
		case err != nil || len(reply) < 2:
			return err
		case len(reply) != 3:
			return fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
		}
		var err1, err2, err3 error
		l.Owner, err1 = reply[0].ToString()
		l.Term, err2 = reply[1].AsInt64()
		l.Value, err3 = reply[2].ToString()
		if err := errors.Join(err1, err2, err3); err != nil {
			return fmt.Errorf("%w: the hash is no leader's: %w", script.ErrShape, err)
		}
		return nil
	})
	return l, unpublished, err
}

// keys are the lock and what its owner has published.
func (e *Election) keys() []string {
	return []string{e.names.Key(), e.names.Prefixed("relock_leader")}
}

// channel is where a leader tells that it has published something.
func (e *Election) channel() string { return e.names.Prefixed("relock_election") }

// released is the channel of the lock, where a release tells that there is no next leader.
func (e *Election) released() string { return e.names.Prefixed("redisson_lock__channel") }

// usable returns why the handle or the context cannot be used, if it cannot.
func (e *Election) usable(ctx context.Context, op string) error {
	if e == nil || e.lock == nil {
		return fmt.Errorf("%s: %w: the election is a zero value; make one with New", op, rlock.ErrArgument)
	}
	var bad error
	if ctx == nil {
		bad = api.ErrNilContext
	}
	return e.handle.Calls().Check(op, bad)
}

func (e *Election) wrap(op string, err error) error { return api.Wrap(op, e.names.Name(), err) }
