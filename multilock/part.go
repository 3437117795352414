package multilock

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/engine"
	"relock/internal/idgen"
	"relock/internal/script"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// Part is one of the locks that a [Mutex] takes together. *rlock.Mutex and *fairlock.Mutex are
// Parts, and so is *rwlock.RWMutex, for its write side. [Read] and [Permits] make Parts of the
// others.
type Part interface {
	// Session and Name identify the lock: they decide when it is its turn, see [New].
	Session() *rlock.Session
	Name() string
	// Lock is that of rlock.Mutex, with the same options and errors.
	Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error)
}

// Read returns the read side of a read-write lock as a Part. The lock itself is a Part for its
// write side. Where both are named the write side is taken first.
func Read(m *rwlock.RWMutex) Part { return reader{m} }

type reader struct{ *rwlock.RWMutex }

func (r reader) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return r.RLock(ctx, opts...)
}

// Permits returns n permits of a semaphore as a Part. Where a semaphore is named twice, the
// numbers add up. An n below 1, or above the limit, is [semaphore.ErrLimit] at the Lock.
func Permits(m *semaphore.Semaphore, n int) Part { return permits{m, n} }

type permits struct {
	*semaphore.Semaphore
	n int
}

func (p permits) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	section, h, err := p.Acquire(ctx, p.n, opts...)
	return section, (*rlock.Hold)(h), err
}

// A lock is a Part and its place in the order.
type lock struct {
	Part
	key        string // the name with the session's prefix
	kind       string
	deployment string // the id of its Redis; "" unless a part of another session has the same key
}

// newLock returns the lock of a part. Errors: ErrArgument, ErrName.
func newLock(p Part) (lock, error) {
	if v := reflect.ValueOf(p); p == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return lock{}, fmt.Errorf("%w: a nil Part; make the locks with New of their packages", rlock.ErrArgument)
	}
	if p, ok := p.(permits); ok && p.n < 1 {
		return lock{}, fmt.Errorf("%w: %d permits of %q; it must be at least 1", semaphore.ErrLimit, p.n, p.Name())
	}
	names, err := (*engine.Session)(p.Session()).Names(p.Name())
	kind := fmt.Sprintf("%T", p)
	if r, ok := p.(reader); ok { // behind the write side, whose owner may read too
		kind = fmt.Sprintf("%T, read", r.RWMutex)
	}
	return lock{Part: p, key: names.Key(), kind: kind}, err
}

// inOrder is the order in which locks are taken: the same in every process.
func inOrder(a, b lock) int {
	return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.kind, b.kind), strings.Compare(a.deployment, b.deployment))
}

// same reports whether two locks can only be told apart by their deployments.
func same(a, b lock) bool { return a.key == b.key && a.kind == b.kind }

// sideOf reports whether two locks are sides of one.
func (l lock) sideOf(o lock) bool { return l.key == o.key && l.Session() == o.Session() }

// elsewhere reports whether two locks have one key in different sessions. Then they are one lock if these
// are of one Redis: also as its two sides, and as two kinds, of which a name has one.
func (l lock) elsewhere(o lock) bool { return l.key == o.key && l.Session() != o.Session() }

// arrange sorts locks and takes out those that are named twice.
func arrange(locks []lock) []lock {
	slices.SortStableFunc(locks, inOrder)
	var kept []lock
next:
	for _, l := range locks {
		for i := len(kept) - 1; i >= 0 && same(kept[i], l); i-- {
			if kept[i].Session() != l.Session() {
				continue
			}
			kept[i].Part = merge(kept[i].Part, l.Part)
			continue next
		}
		kept = append(kept, l)
	}
	return kept
}

// merge returns the Part of a lock that is named twice: the permits of both, the one that draws a
// token, else the first.
func merge(first, second Part) Part {
	if p, ok := first.(permits); ok {
		p.n += second.(permits).n
		return p
	}
	if isFenced(second) && !isFenced(first) {
		return second
	}
	return first
}

// isFenced reports whether a Part is a mutex that draws tokens.
func isFenced(p Part) bool {
	var h *engine.Handle
	switch m := p.(type) {
	case *rlock.Mutex:
		h = (*engine.Handle)(m)
	case *fairlock.Mutex:
		h = (*engine.Handle)(m.Mutex)
	}
	prim, err := h.Primitive()
	return err == nil && prim.Kind().Fenced
}

//go:embed lua/*.lua
var luaFiles embed.FS

var deploymentScript = script.Load(luaFiles, "lua/deployment.lua")

// locate asks for the deployments of locks that are not told apart by their keys and sessions, each for so
// long at most, and sorts them.
// Errors: ErrArgument if two sessions of one deployment name the same lock; the client's.
func locate(ctx context.Context, locks []lock, most time.Duration) ([]lock, error) {
	locks = slices.Clone(locks)
	for i, l := range locks {
		if prefix, ambiguous := l.ambiguous(locks); ambiguous {
			var err error
			if locks[i].deployment, err = deployment(ctx, l.Session(), prefix, most); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(locks, inOrder)
	for i, l := range locks {
		if slices.ContainsFunc(locks[:i], func(o lock) bool { return l.elsewhere(o) && l.deployment == o.deployment }) {
			return nil, fmt.Errorf("%w: %q is named twice, through two sessions of one Redis: they would wait for each other; use one session",
				rlock.ErrArgument, l.Name())
		}
	}
	return locks, nil
}

// ambiguous reports whether only the deployments tell the lock from others, and under which prefix to ask for them: the
// longest one of their sessions, which all of these may use. Each would find another id under its own.
func (l lock) ambiguous(locks []lock) (prefix string, ok bool) {
	prefix = (*engine.Session)(l.Session()).Config().Prefix
	for _, o := range locks {
		if !l.elsewhere(o) {
			continue
		}
		ok = true
		if p := (*engine.Session)(o.Session()).Config().Prefix; len(p) > len(prefix) {
			prefix = p
		}
	}
	return prefix, ok
}

// deployment returns the id that a session's Redis has under a prefix.
func deployment(ctx context.Context, s *rlock.Session, prefix string, most time.Duration) (id string, err error) {
	session := (*engine.Session)(s)
	names := session.NamesOf(prefix + "relock_deployment")
	handle := engine.NewHandle(session, &names, nil, nil)
	cmd := script.Command{Script: deploymentScript, Keys: names.Keys[:], Args: []string{idgen.Request()}}
	most = min(most, session.Config().ReleaseTimeout)
	err = handle.Calls().CallWithin(ctx, most, "identify the Redis", cmd, func(r rueidis.RedisResult) (err error) {
		id, err = r.ToString()
		return err
	})
	return id, err
}
