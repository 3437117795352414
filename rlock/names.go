package rlock

import (
	"fmt"

	"relock/internal/keyname"
)

// Names are the names of one lock in Redis. Primitives embed it: it has the Name and
// Key of the interface. All that it builds are in one hash slot of a Cluster.
type Names struct {
	name, key, publish string
	style              keyname.Style
}

// Names checks a lock's name and returns what it is called in this session's Redis.
// Errors: [ErrName] if it is empty, [ErrArgument] if s is nil.
func (s *Session) Names(name string) (Names, error) {
	n := Names{name: name}
	switch {
	case s == nil:
		return n, fmt.Errorf("%w: the session is nil; make one with Dial or NewSession", ErrArgument)
	case name == "":
		return n, fmt.Errorf("%w: it is empty; a name has at least one byte", ErrName)
	}
	n.key, n.publish, n.style = s.cfg.Prefix+name, s.pub, s.names
	return n, nil
}

// Name returns the name as the caller gave it.
func (n Names) Name() string { return n.name }

// Key returns the name with the session's prefix: the key of the lock itself.
func (n Names) Key() string { return n.key }

// Prefixed returns prefix:{key}, by Redisson's rule for braces.
func (n Names) Prefixed(prefix string) string { return n.style.Prefix(prefix, n.key) }

// Suffixed returns {key}:suffix, by Redisson's rule for braces.
func (n Names) Suffixed(suffix string) string { return n.style.Suffix(n.key, suffix) }

// Listeners returns the subcommand of PUBSUB that counts, on the node of the lock, who
// listens on its channel; "" in a Cluster where subscriptions may be at any node.
func (n Names) Listeners() string {
	switch {
	case n.publish == "SPUBLISH":
		return "SHARDNUMSUB"
	case n.style.Cluster:
		return ""
	}
	return "NUMSUB"
}

// Publish returns the command by which scripts publish to channels that waiters listen
// on: PUBLISH, or SPUBLISH in a Cluster with sharded channels.
func (n Names) Publish() string { return n.publish }
