package explore

// When time makes a difference.

// nextTime is when the clock makes a difference next: never, if it does not.
func (w *world) nextTime() int64 {
	now, next := w.now(), int64(never)
	at := func(ms int64) {
		if ms > now && ms < next {
			next = ms
		}
	}
	for k := range w.redis.Keys {
		if k.End != 0 && k.End-now < farOff {
			at(k.End + 1)
		}
		for _, m := range k.Members {
			w.memberTimes(m.Name, m.Score, at)
		}
	}
	for i := range w.clients {
		if w.wires[i].state == alive || w.wires[i].state == stopped {
			at(w.clients[i].next(now))
		}
	}
	return next
}

// memberTimes tells when a member of a sorted set begins to mean something else.
func (w *world) memberTimes(name string, score float64, at func(int64)) {
	if isEntry(name) || name == "" {
		return
	}
	switch c := name[0]; {
	case score > 1e15 && untilScore[c] != 0:
		at(int64(score - untilScore[c]))
	case score > 1e15 && lessScore[c] != 0:
		until := int64(lessScore[c] - score)
		at(until + 1)
		if c == 's' {
			at(until + w.set.life + 1)
		}
	case c == 't':
		at(int64(score-sinceScore[c]) + 5)
	case score > 1e15 && c == 'p':
		at(int64(score-sinceScore[c]) + 100)
	case score > 1e12 && score < 1e14: // permits, readers: with their end
		at(int64(score))
		at(int64(score) + 1)
	}
}
