package explore

import (
	"fmt"
	"strings"

	"relock/internal/test/explore/memredis"
)

// check returns what is wrong with a state, "" if nothing is.
func (w *world) check() string {
	if w.wrong != "" {
		return w.wrong
	}
	if what := w.exclusion(); what != "" {
		return what
	}
	for k := range w.redis.Keys {
		if k.End == 0 && !w.set.endless(k.Name) {
			return "the key " + k.Name + " has no end"
		}
	}
	if w.set.counts != nil {
		if what := w.set.counts(w); what != "" {
			return what
		}
	}
	return w.strays()
}

// exclusion holds what the clients trust against each other, and against Redis.
func (w *world) exclusion() string {
	now := w.now()
	var inside [len(ids)]trust
	permits := 0
	for i, c := range w.clients {
		t := c.trusts(now)
		if t.mode == 0 || w.robbed[i] == t.num {
			continue
		}
		inside[i] = t
		if t.mode == 'p' {
			permits += t.n
		}
		if !w.set.stands(w, i, t) {
			return fmt.Sprintf("%s trusts %c:%d, which Redis does not have", who(i), ids[i], t.num)
		}
		for j := range i {
			if o := inside[j]; o.mode == 'x' || t.mode == 'x' && o.mode != 0 {
				return fmt.Sprintf("%s and %s are inside together", who(j), who(i))
			}
		}
	}
	if permits > w.set.limit {
		return fmt.Sprintf("%d permits are taken of %d", permits, w.set.limit)
	}
	return ""
}

// strays returns what stands in Redis that belongs to no claim, when nothing is on its way.
func (w *world) strays() string {
	if w.taints&(ranLate|died) != 0 || len(w.late) > 0 {
		return ""
	}
	for i := range w.wires {
		if wi := &w.wires[i]; len(wi.cmds)+len(wi.answers)+len(wi.parcels) > 0 {
			return ""
		}
	}
	kept := false
	for _, owner := range w.set.owners(w) {
		who, num, ok := claimOf(owner)
		if !ok || w.clients[who].lives(num) {
			kept = true
			continue
		}
		if w.ending(w.redis.End(w.set.key)) {
			continue
		}
		// One whose hold was deleted may be given the lock anew while it ends: for the short lease of a grant.
		if w.taints&evicted == 0 || w.redis.End(w.set.key)-w.now() > w.set.grantLease {
			return "the lock is left to " + owner + ", which is over"
		}
	}
	for k := range w.redis.Keys {
		for _, m := range k.Members {
			if !isEntry(m.Name) && !isReaders(m.Name) {
				continue
			}
			owner := ownerOf(m.Name)
			// One that was forced out may have entered the line anew before it heard: when its turn comes it is dismissed.
			if who, num, ok := claimOf(owner); ok && !w.clients[who].lives(num) && w.taints&evicted == 0 {
				return "the entry of " + owner + ", which is over, stands in the line"
			}
		}
	}
	for _, c := range w.clients {
		if kept || !c.over() {
			return ""
		}
	}
	for k := range w.redis.Keys {
		if w.ending(k.End) {
			continue
		}
		left := (!w.set.endless(k.Name) || k.Members != nil) && !w.set.remains(&k)
		if left && w.taints&evicted == 0 { // what went along with a lock that was deleted ends by itself
			return "all is over, and " + k.Name + " is left"
		}
	}
	return ""
}

// ending reports whether the end of a key, if it has one, is in this very ms.
func (w *world) ending(end int64) bool { return end != 0 && end <= w.now() }

// ownerOf returns the owner of an entry; of a named one behind the session, a letter, and without the id.
func ownerOf(entry string) string {
	if entry[0] == 'n' {
		return entry[20:21] + entry[53:]
	}
	return entry[20:]
}

func who(i int) string { return ids[i : i+1] }

// dump tells what stands in Redis, in one line for each key.
func dump(r *memredis.Redis) string {
	var b strings.Builder
	now := r.Millis()
	for k := range r.Keys {
		fmt.Fprintf(&b, "     %s", k.Name)
		if k.End != 0 {
			fmt.Fprintf(&b, " (%d ms)", k.End-now)
		}
		fmt.Fprintf(&b, ": %s%q", k.Text, k.Items)
		for _, m := range k.Members {
			fmt.Fprintf(&b, " %q=%s", m.Name, meaning(m.Name, m.Score, now))
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// meaning is what a score of the line says.
func meaning(m string, score float64, now int64) string {
	if !isEntry(m) && m != "" && score > 1e15 {
		for _, scores := range []map[byte]float64{untilScore, sinceScore} {
			if base := scores[m[0]]; base != 0 {
				return fmt.Sprintf("%+d ms", int64(score-base)-now)
			}
		}
		if base := lessScore[m[0]]; base != 0 {
			return fmt.Sprintf("%+d ms", int64(base-score)-now)
		}
		if base := countScore[m[0]]; base != 0 {
			return fmt.Sprint(int64(score - base))
		}
	}
	return fmt.Sprintf("%.0f", score)
}
