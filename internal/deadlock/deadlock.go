// Package deadlock finds Locks that wait for each other in a cycle, within a session and across
// sessions, and chooses the one that ends. It knows neither Redis nor the locks: a [Suspect] tells
// what keeps it out; a [Watch] is the part of one session, whose [Config] has the ways to Redis.
//
// A [Wait] lies in the open sections of some claims, and lasts for a claim that holds its lock:
// it needs all claims that keep it out to end. So a cycle of waits and claims is a deadlock. It
// is found by edge chasing (Chandy, Misra, Haas, "Distributed Deadlock Detection", 1983):
//
//   - seek: a wait that has lasted for a while follows the claim that it waits for to that one's
//     session, and the waits in there further on. A message has the path so far. It has found a
//     cycle when it comes to a claim in which the first wait lies.
//   - hint: if another wait of the cycle is to end, its session is told to seek itself.
//   - confirm: the session of the wait that is to end has each step of the cycle looked at once
//     more, one after the other. When that comes back within confirmedFor, the wait ends.
//
// Why there is no false one: ids of waits and of claims are never used again, and each "lies in"
// and each "waits for" is true for one stretch of time. The first round has seen each step
// before the second has begun, and the second sees it again: so all of them were true together
// when the second began. From then on such a cycle ends from outside only: by a context, a Wait,
// a lease. What ends so during the second round, which is short, may still cost its victim.
//
// Why each is found: the step that closes a cycle is the beginning of its youngest wait, since
// a claim is granted before a wait can lie in it. So the youngest wait finds the cycle at once
// if it needs no message, and else when it has lasted for long enough to seek.
package deadlock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"relock/internal/api"
)

// A Claim is what Redis has granted to one session for the lock of a key. The session has given
// it a number, and never gives it again.
type Claim struct {
	Session string
	Number  uint64
	Key     string
}

// owner is the claim's owner as it stands in Redis, but for the 0 in front of the number of one that may be kept.
func (c Claim) owner() string { return c.Session + ":" + strconv.FormatUint(c.Number, 10) }

// A Wait is one Lock that waits inside of open sections. Its ID is that of no other wait, and
// greater than those of the waits that began before it, as far as clocks agree.
type Wait struct {
	ID      string
	Session string // that waits
	Key     string // of the lock
	Side    string // of that: not the same claims keep a reader out as a writer
	Label   string // of the session
}

// waitID returns the id of a wait that has begun at a time, the n-th of its session.
func waitID(began time.Time, session string, n uint64) string {
	return fmt.Sprintf("%020d/%s/%d", began.UnixMicro(), session, n)
}

// beside reports whether two waits of one session are for the same side of a lock.
func (w Wait) beside(o Wait) bool {
	return w.Session == o.Session && w.Key == o.Key && w.Side == o.Side
}

// A Step is a wait and a claim that keeps it out.
type Step struct {
	Wait   Wait
	Holder Claim
}

// A Cycle is a deadlock: each wait lies in a section of the holder of the step before, the first
// one in one of the last.
type Cycle []Step

// maxSteps bounds a cycle that is looked for.
const maxSteps = 32

// victim returns the index of the wait that is to end: the youngest.
func (c Cycle) victim() int {
	v := 0
	for i := range c {
		if c[i].Wait.ID > c[v].Wait.ID {
			v = i
		}
	}
	return v
}

// from returns the cycle beginning with another step.
func (c Cycle) from(i int) Cycle { return slices.Concat(c[i:], c[:i]) }

// String tells the cycle: "a" (held by …) waits for "b" (held by …) waits for "a".
func (c Cycle) String() string {
	var b strings.Builder
	for i, s := range c {
		next := c[(i+1)%len(c)]
		fmt.Fprintf(&b, "%s (held by %s, %s) waits for ", api.Quote(s.Wait.Key), api.Quote(s.Holder.owner()), api.Quote(next.Wait.Label))
	}
	return b.String() + api.Quote(c[0].Wait.Key)
}

// oneEach returns one wait for each side of a lock that some waits are for: the oldest, but first
// itself if it is among them.
func oneEach(waits []Wait, first string) (one []Wait) {
	slices.SortFunc(waits, func(a, b Wait) int { return strings.Compare(a.ID, b.ID) })
	for _, w := range waits {
		i := slices.IndexFunc(one, w.beside)
		switch {
		case i < 0:
			one = append(one, w)
		case w.ID == first:
			one[i] = w
		}
	}
	return one
}
