package main

import "time"

// since works out how long the owner has held the lock: redis is Redis's time in ms, ttl what is left of the
// owner's lease. Nothing in Redis says when a lock was acquired, since that would cost each acquisition, so
// there are bounds. A hold is not older than its session. And a lease that has its session's length was
// renewed, or acquired, so long ago as is missing from it; a fixed lease (rlock.Lease) has a length of its
// own, which shows only if it is longer, or shorter by more than a third.
func (o *Owner) since(redis, ttl int64) {
	o.Least, o.Most = 0, 0
	p := o.Process
	if p == nil {
		return
	}
	o.Most = max(1, redis-p.Started.UnixMilli())
	if ttl <= p.Lease && ttl >= p.Lease*3/5 && p.Lease-ttl <= o.Most {
		o.Least = p.Lease - ttl
	}
}

// ages works out how long each owner has held its lock.
func (l *Lock) ages() {
	for i := range l.Owner {
		switch o := &l.Owner[i]; {
		case o.TTL > 0:
			o.since(l.now, o.TTL)
		case l.Count == 1:
			o.since(l.now, l.TTL)
		default: // of several readers it is not known whose lease is the longest
			o.since(l.now, 0)
		}
	}
}

// heldFor prints for how long a lock has been held by the owner that has it longest.
func (l *Lock) heldFor() string {
	var least, most int64
	for _, o := range l.Owner {
		least, most = max(least, o.Least), max(most, o.Most)
		if o.Most == 0 {
			most = noEnd
		}
	}
	if len(l.Owner) < l.Count {
		most = noEnd
	}
	return between(max(least, l.seen), most)
}

// between prints how long something has lasted of which two bounds are known; 0 and noEnd if not.
func between(least, most int64) string {
	from, to := whole(least), whole(most+999)
	switch {
	case most == 0 || most >= noEnd:
		if from == 0 {
			return "-"
		}
		return ">" + from.String()
	case least == 0 || from == 0:
		return "<" + to.String()
	case from == to:
		return from.String()
	}
	return from.String() + "-" + to.String()
}

// whole cuts ms to seconds.
func whole(ms int64) time.Duration {
	return (time.Duration(ms) * time.Millisecond).Truncate(time.Second)
}
