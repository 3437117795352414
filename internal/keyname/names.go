package keyname

import (
	"strconv"
	"strings"
)

// A Space is what the names of all locks of a session have in common.
type Space struct {
	Prefix  string // put before every name
	Cluster bool
	Publishing
}

// Publishing is how scripts publish to channels that waiters listen on.
type Publishing struct {
	// Publish is the command: PUBLISH, or SPUBLISH in a Cluster with sharded channels.
	Publish string
	// Counts is "1" if the reply of that counts all connections that hear a message, for scripts. In
	// a Cluster with plain channels it counts those of one node: then it is "0".
	Counts string
}

// Publishes returns how scripts publish in a deployment.
func Publishes(cluster, sharded bool) Publishing {
	switch {
	case sharded:
		return Publishing{Publish: "SPUBLISH", Counts: "1"}
	case cluster:
		return Publishing{Publish: "PUBLISH", Counts: "0"}
	}
	return Publishing{Publish: "PUBLISH", Counts: "1"}
}

// What the names of helper keys begin with that several kinds of locks have, for [Names.Prefixed]. Renaming one
// parts new processes from those that run already.
const (
	Line  = "relock_line1" // the line of those that wait, see line.lua of package script
	Holds = "relock_holds" // the ids of holds
	// OwnersHolds is the ids of holds of one owner of a read-write lock, whose name follows: so it is not that of Holds, which
	// a plain lock has whose name is that of the other with an owner behind it.
	OwnersHolds = "relock_rw_holds"
)

// Names are the names of one lock in Redis. All that it builds are in one hash slot of a
// Cluster. Building is left to the caller's need: a session may hold a great many locks.
type Names struct {
	*Space // nil: of no session
	// Keys is the key of the lock itself, the session's prefix and the name. It is an array, so that
	// a command with this one key needs no slice of its own; it must not be changed.
	Keys [1]string
}

// Names returns the names of a lock by its name. Those of a nil Space are good for errors only.
func (s *Space) Names(name string) Names {
	if s != nil {
		name = s.Prefix + name
	}
	return s.NamesOf(name)
}

// NamesOf returns the names of a lock by its key.
func (s *Space) NamesOf(key string) Names { return Names{Space: s, Keys: [1]string{key}} }

// Name returns the name as the caller gave it.
func (n *Names) Name() string {
	if n.Space == nil {
		return n.Keys[0]
	}
	return n.Keys[0][len(n.Prefix):]
}

// Key returns the name with the session's prefix: the key of the lock itself.
func (n *Names) Key() string { return n.Keys[0] }

// Prefixed returns prefix:{key}, by Redisson's rule for braces.
func (n *Names) Prefixed(prefix string) string { return n.style().Prefix(prefix, n.Keys[0]) }

// OwnersHolds returns what the names of the keys of [OwnersHolds] begin with; the owner follows. For a name with a brace
// the length of the name tells where it ends, or the owner "42:x" of the lock "orders" and "x" of "{orders}:42" had one key.
func (n *Names) OwnersHolds() string {
	prefix := OwnersHolds
	if strings.ContainsAny(n.Keys[0], "{}") {
		prefix += strconv.Itoa(len(n.Keys[0]))
	}
	return n.Prefixed(prefix) + ":"
}

// Suffixed returns {key}:suffix, by Redisson's rule for braces.
func (n *Names) Suffixed(suffix string) string { return n.style().Suffix(n.Keys[0], suffix) }

// style is good also for names of no session.
func (n *Names) style() Style { return Style{Cluster: n.Space != nil && n.Cluster} }
