package keyname

// A Space is what the names of all locks of a session have in common.
type Space struct {
	Prefix  string // put before every name
	Cluster bool
	// Publish is the command by which scripts publish to channels that waiters listen on:
	// PUBLISH, or SPUBLISH in a Cluster with sharded channels.
	Publish string
}

// Names are the names of one lock in Redis. All that it builds are in one hash slot of a
// Cluster. Building is left to the caller's need: a session may hold a great many locks.
type Names struct {
	space *Space // nil: of no session
	// key is the session's prefix and the name. An array, so that a command with this one
	// key needs no slice of its own.
	key [1]string
}

// Names returns the names of a lock by its name. Those of a nil Space are good for errors only.
func (s *Space) Names(name string) Names {
	if s != nil {
		name = s.Prefix + name
	}
	return s.NamesOf(name)
}

// NamesOf returns the names of a lock by its key.
func (s *Space) NamesOf(key string) Names { return Names{space: s, key: [1]string{key}} }

// Name returns the name as the caller gave it.
func (n *Names) Name() string {
	if n.space == nil {
		return n.key[0]
	}
	return n.key[0][len(n.space.Prefix):]
}

// Key returns the name with the session's prefix: the key of the lock itself.
func (n *Names) Key() string { return n.key[0] }

// Keys returns Key alone, for a command. The slice must not be changed.
func (n *Names) Keys() []string { return n.key[:] }

// Prefixed returns prefix:{key}, by Redisson's rule for braces.
func (n *Names) Prefixed(prefix string) string { return n.style().Prefix(prefix, n.key[0]) }

// Suffixed returns {key}:suffix, by Redisson's rule for braces.
func (n *Names) Suffixed(suffix string) string { return n.style().Suffix(n.key[0], suffix) }

// Publish returns [Space].Publish.
func (n *Names) Publish() string { return n.space.Publish }

// CountsReceivers is "1" if the reply of [Names.Publish] counts all connections that hear a
// message, for scripts. In a Cluster with plain channels it counts those of one node: then it is "0".
func (n *Names) CountsReceivers() string {
	if n.space.Cluster && n.space.Publish != "SPUBLISH" {
		return "0"
	}
	return "1"
}

// style is good also for names of no session.
func (n *Names) style() Style { return Style{Cluster: n.space != nil && n.space.Cluster} }
