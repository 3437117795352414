package report

import "sync"

// MostOnce bounds a Once: what costs a command for each name must not cost one for each of a great many.
const MostOnce = 128

// A Once remembers the names of which something was looked at. The zero value is that of none. Safe for
// concurrent use.
type Once struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

// First reports whether a name comes for the first time, and is one of the first MostOnce.
func (o *Once) First(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, seen := o.seen[name]; seen || len(o.seen) >= MostOnce {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]struct{}{}
	}
	o.seen[name] = struct{}{}
	return true
}
