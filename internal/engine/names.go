package engine

import (
	"fmt"

	"relock/internal/keyname"
)

// Names are the names of one lock in Redis. All that it builds are in one hash slot of a
// Cluster. Building is left to the caller's need: a session may hold a great many locks.
type Names struct {
	s *Session
	// key is the session's prefix and the name. An array, so that a command with this one
	// key needs no slice of its own.
	key [1]string
}

var errZeroSession = fmt.Errorf("%w: the session is a zero value; make one with Dial or NewSession", ErrArgument)

// Names checks a lock's name and returns what it is called in this session's Redis.
// Errors: [ErrName] if it is empty, [ErrArgument] if s is nil or a zero value.
func (s *Session) Names(name string) (Names, error) {
	n := Names{s: s, key: [1]string{name}}
	if s == nil {
		return n, fmt.Errorf("%w: the session is nil; make one with Dial or NewSession", ErrArgument)
	}
	if !s.made() {
		return Names{key: n.key}, errZeroSession
	}
	n.key[0] = s.cfg.Prefix + name
	if name == "" {
		return n, fmt.Errorf("%w: it is empty; a name has at least one byte", ErrName)
	}
	return n, nil
}

// NamesOf returns the names of a lock of this session by its key.
func (s *Session) NamesOf(key string) Names { return Names{s: s, key: [1]string{key}} }

// Name returns the name as the caller gave it.
func (n *Names) Name() string {
	if n.s == nil {
		return n.key[0]
	}
	return n.key[0][len(n.s.cfg.Prefix):]
}

// Key returns the name with the session's prefix: the key of the lock itself.
func (n *Names) Key() string { return n.key[0] }

// Keys returns Key alone, for a command. The slice must not be changed.
func (n *Names) Keys() []string { return n.key[:] }

// Prefixed returns prefix:{key}, by Redisson's rule for braces.
func (n *Names) Prefixed(prefix string) string { return n.style().Prefix(prefix, n.key[0]) }

// Suffixed returns {key}:suffix, by Redisson's rule for braces.
func (n *Names) Suffixed(suffix string) string { return n.style().Suffix(n.key[0], suffix) }

// Publish returns the command by which scripts publish to channels that waiters listen
// on: PUBLISH, or SPUBLISH in a Cluster with sharded channels.
func (n *Names) Publish() string { return n.s.publish }

// CountsReceivers reports whether the reply of [Names.Publish] counts all connections that
// hear a message. In a Cluster with plain channels it counts those of one node.
func (n *Names) CountsReceivers() bool { return !n.s.cluster || n.s.publish == "SPUBLISH" }

// style is good also for a handle that was made with a nil session, for its errors.
func (n *Names) style() keyname.Style {
	if n.s == nil {
		return keyname.Style{}
	}
	return keyname.Style{Cluster: n.s.cluster}
}
