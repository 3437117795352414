package torture

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"relock/internal/idgen"
	"relock/internal/kind"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
	"relock/torture/check"
	"relock/torture/nemesis"
	"relock/torture/oracle"
	"relock/torture/worker"
)

// leftovers checks that Redis has nothing of the sessions that were closed, and that what
// those have left that were killed ends with its lease.
func (r *round) leftovers(in *check.Round) {
	now := oracle.Now()
	excused, lost := r.excused(in, now), slices.ContainsFunc(in.Faults, func(f nemesis.Fault) bool { return f.Loss })
	for key, node := range r.set.Keys() {
		if r.permanent(key) {
			continue
		}
		for _, owner := range r.owners(node, key) {
			session, _, _ := strings.Cut(owner, ":")
			session, _, _ = strings.Cut(session, ".")
			if strings.HasPrefix(session, "owner-") {
				session = "owner" // of any session
			} else if strings.HasSuffix(key, timeouts) {
				session = sessionOfPermit(in, owner)
			}
			if !excused[session] && !(lost && r.given(node, key)) {
				r.failed("%s has %q of %s, a session that was closed, at %.3f s:%s\n\t%s%s", key, owner, session, now.Seconds(), r.lately(in, now),
					r.describe(node, key), r.story(in, session, key))
			}
		}
	}
	// A counter's requests are remembered for minutes; all else lives for the longest lease.
	ends := func(key string) bool { return r.permanent(key) || strings.HasPrefix(key, requests) }
	var left []string
	for deadline := time.Now().Add(2*r.maxLease() + 10*time.Second); ; time.Sleep(100 * time.Millisecond) {
		left = left[:0]
		for key, node := range r.set.Keys() {
			if !ends(key) && !r.over(node, key) {
				left = append(left, r.describe(node, key))
			}
		}
		if len(left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		r.failed("keys that do not end:\n\t%s", strings.Join(left, "\n\t"))
	}
	r.remembered(len(in.Processes))
}

// sessionOfPermit returns the session that has made a permit's id; "owner", of any, if none has.
func sessionOfPermit(in *check.Round, id string) string {
	mark, _, _, _ := idgen.SplitPermit(id)
	for _, p := range in.Processes {
		if idgen.PermitMark(p.Session) == mark {
			return p.Session
		}
	}
	return "owner"
}

// given reports whether a lock stands for no longer than a release gives it for. Such a lock may be left where data was
// lost: with a failover an entry may come back that was taken out of the line. It stands there until it is its turn,
// however long that takes, and then has the lock once: its session gives that back, but not while it closes.
func (r *round) given(node *redistest.Server, key string) bool {
	left, err := node.Do(r.tb, "PTTL", key).AsInt64()
	return err == nil && left != -1 && left <= waiting.GrantLease.Milliseconds()
}

// lately says what failed shortly before a time, and all that lost data.
func (r *round) lately(in *check.Round, now time.Duration) (text string) {
	for _, f := range in.Faults {
		if now < f.End+10*time.Second || f.Loss {
			text += fmt.Sprintf("\n\t%.3f to %.3f s: %s, of worker %d", f.Begin.Seconds(), f.End.Seconds(), f.Name, f.Worker)
		}
	}
	return text
}

// story says what the sessions that may have left something did last with its lock.
func (r *round) story(in *check.Round, session, key string) (text string) {
	i := slices.IndexFunc(r.locks, func(l worker.Lock) bool {
		return key == l.Name || key == "{"+l.Name+"}"+timeouts || key == l.Name+timeouts
	})
	for _, p := range in.Processes {
		if i < 0 || session != "owner" && session != p.Session {
			continue
		}
		var last []oracle.Entry
		for _, e := range p.Entries {
			if e.Lock == i {
				last = append(last, e)
			}
		}
		slices.SortFunc(last, func(a, b oracle.Entry) int { return cmp.Compare(a.Call, b.Call) })
		for _, e := range last[max(0, len(last)-5):] {
			text += fmt.Sprintf("\n\t%s: op %d, outcome %d, n %d, called %.3f, got %.3f, in %.3f, end %.3f, over %.3f", p.Session, e.Op, e.Outcome, e.N,
				e.Call.Seconds(), e.Got.Seconds(), e.In.Seconds(), e.End.Seconds(), e.Over.Seconds())
		}
	}
	return text
}

// describe says what stands under a key, and for how long.
func (r *round) describe(node *redistest.Server, key string) string {
	kind, _ := node.Do(r.tb, "TYPE", key).ToString()
	ttl, _ := node.Do(r.tb, "PTTL", key).AsInt64()
	var all any
	switch kind {
	case "hash":
		all, _ = node.Do(r.tb, "HGETALL", key).AsStrMap()
	case "zset":
		all, _ = node.Do(r.tb, "ZRANGE", key, "0", "-1", "WITHSCORES").AsZScores()
	}
	return fmt.Sprintf("%s, a %s with a TTL of %d ms: %v", key, kind, ttl, all)
}

const (
	// timeouts ends the keys of permits.
	timeouts = ":timeout"
	// requests begins the keys in which a counter's requests are remembered, one for each session.
	requests = "relock_requests:"
	// rememberedFor is for how long they are, with the ReleaseTimeout that the workers have.
	rememberedFor = 3 * kind.Memory
)

// remembered checks that what is remembered of a counter's requests will end by itself, and
// that no session has left more than one key of them.
func (r *round) remembered(sessions int) {
	n := 0
	for key, node := range r.set.Keys() {
		if !strings.HasPrefix(key, requests) {
			continue
		}
		n++
		ttl, err := node.Do(r.tb, "PTTL", key).AsInt64()
		if err != nil || ttl == -1 || ttl > rememberedFor.Milliseconds() {
			r.failed("%s has a TTL of %d ms (%v), and should have one of %v at most", key, ttl, err, rememberedFor)
		}
	}
	if n > sessions {
		r.failed("%d keys %s..., of %d sessions", n, requests, sessions)
	}
}

// permanent reports whether the key is documented to stay.
func (r *round) permanent(key string) bool {
	return strings.HasPrefix(key, "redisson_lock_token:") || key == "relock_quorum_life" || slices.ContainsFunc(r.locks, func(l worker.Lock) bool {
		return l.Name == key && (l.Kind == worker.Counter || l.Kind == worker.Semaphore)
	})
}

// over reports whether the key has permits that have all expired: they are removed by the next
// request for some.
func (r *round) over(node *redistest.Server, key string) bool {
	if !strings.HasSuffix(key, timeouts) {
		return false
	}
	n, err := node.Do(r.tb, "ZCOUNT", key, "("+strconv.FormatInt(time.Now().UnixMilli(), 10), "+inf").AsInt64()
	return err == nil && n == 0
}

// excused returns the sessions that may have left something: those that were killed within
// their lease, those of which a command was delivered late, and all if Redis may have lost their releases. A
// named owner is excused if any session is.
func (r *round) excused(in *check.Round, now time.Duration) map[string]bool {
	excused := map[string]bool{}
	for _, f := range in.Faults {
		for _, p := range in.Processes {
			if f.Worker >= 0 && f.Worker != p.Worker || f.End+p.Lease+2*time.Second < now {
				continue
			}
			if f.Killed && p.Killed || f.Late || f.Loss {
				excused[p.Session] = true
				excused["owner"] = true
			}
		}
	}
	return excused
}

// owners returns who holds something by what stands under a key: the fields of a lock, the permits of a semaphore
// that have not expired.
func (r *round) owners(node *redistest.Server, key string) (owners []string) {
	kind, _ := node.Do(r.tb, "TYPE", key).ToString()
	var all []string
	switch {
	case strings.HasPrefix(key, "relock_"): // goes along with another key
		return nil
	case kind == "hash":
		all, _ = node.Do(r.tb, "HKEYS", key).AsStrSlice()
	case kind == "zset":
		all, _ = node.Do(r.tb, "ZRANGEBYSCORE", key, "("+strconv.FormatInt(time.Now().UnixMilli(), 10), "+inf").AsStrSlice()
	}
	for _, o := range all {
		if o != "mode" {
			owners = append(owners, o)
		}
	}
	return owners
}
