package line_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// deadEntries puts so many entries in front of a line that are written as line.lua says, of sessions that have died:
// silent for so long, or heard of just now.
func deadEntries(t *testing.T, s *redistest.Server, name string, n int, silent time.Duration) {
	t.Helper()
	const life = 5000 // ms
	clock, err := s.Do(t, "TIME").AsIntSlice()
	must(t, err)
	now := clock[0]*1000 + clock[1]/1000
	alive := int64(5e15) - (now - silent.Milliseconds() + life)
	cmd := []string{"ZADD", locktest.LineOf(name)}
	for i := range n {
		id := fmt.Sprintf("dead%04d", i)
		cmd = append(cmd, strconv.FormatInt((now-60_000)*1000+int64(i), 10), fmt.Sprintf("g00012500%06d%05d%s:1", life, len(id), id),
			strconv.FormatInt(alive, 10), "s"+id)
	}
	must(t, s.Do(t, cmd...).Error())
	must(t, s.Do(t, "PEXPIRE", locktest.LineOf(name), "600000").Error())
}

// A circle is some sessions that have a lock one after the other, each once more when others have had it.
type circle struct {
	t       *testing.T
	s       *redistest.Server
	name    string
	members []*member
	entered chan *member // has got the lock
	in      *member      // has it
}

type member struct {
	m       *rlock.Mutex
	p       *faulttest.Proxy
	stands  <-chan struct{} // it waits: Redis has refused it
	release func() error
}

// newCircle has the first of n sessions hold a lock, and the others wait.
func newCircle(t *testing.T, s *redistest.Server, n int) *circle {
	t.Helper()
	c := &circle{t: t, s: s, name: redistest.Name(t), entered: make(chan *member, n)}
	for i := range n {
		trace, stands := locktest.Waiting()
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace})
		c.members = append(c.members, &member{m: rlock.New(ses, c.name), p: p, stands: stands})
		c.lock(c.members[i])
		if i == 0 {
			c.next()
			continue
		}
		c.stands(c.members[i])
	}
	return c
}

// lock has a session want the lock.
func (c *circle) lock(m *member) {
	ctx := within(c.t, time.Minute)
	go func() {
		_, h, err := m.m.Lock(ctx)
		if err != nil {
			c.t.Error(err)
			return
		}
		m.release = h.Unlock
		c.entered <- m
	}()
}

// stands waits until it stands in the line.
func (c *circle) stands(m *member) {
	c.t.Helper()
	locktest.Get(c.t, m.stands, 10*time.Second, "the session to wait")
	locktest.Stays(c.t, within(c.t, time.Minute), time.Millisecond) // in a bubble the next would come at the same time
}

// next waits for the next session that has the lock: on a busy machine not always the first, which may be slow to
// take it.
func (c *circle) next() {
	c.t.Helper()
	c.in = locktest.Get(c.t, c.entered, 10*time.Second, "the next session's Lock")
}

// passOn has the lock pass to the next session, and the one before wait once more. It returns how many commands Redis
// has run for that.
func (c *circle) passOn() int {
	c.t.Helper()
	before, last := locktest.Commands(c.t, c.s), c.in
	must(c.t, last.release())
	c.next()
	c.lock(last)
	c.stands(last)
	return locktest.Commands(c.t, c.s) - before
}

// costs returns what so many hand-overs cost.
func (c *circle) costs(n int) (all []int) {
	c.t.Helper()
	for range n {
		all = append(all, c.passOn())
	}
	return all
}

// end lets each session have the lock once more.
func (c *circle) end() {
	c.t.Helper()
	for range c.members[1:] {
		must(c.t, c.in.release())
		c.next()
	}
	must(c.t, c.in.release())
}

// Five hundred sessions that waited have died at once. Releases pass them over, at most 16 in one script, and move each
// behind the others once, or take it out: then a hand-over costs what it costs without them. It is so when they have
// just died, and nobody listens on their channels any more, and when they were silent for long (scenario 39).
func TestFiveHundredDeadSessionsCostEachOnce(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		const dead, inOneScript = 500, 16
		for what, silent := range map[string]time.Duration{"just died": 0, "silent for a while": 7 * time.Second, "silent for long": time.Minute} {
			c := newCircle(t, s, 3)
			usual := c.costs(9)
			deadEntries(t, s, c.name, dead, silent)
			releaser := c.in.p
			releases := locktest.CallsSent(t, releaser, "release")
			first := c.passOn()
			releases = locktest.CallsSent(t, releaser, "release") - releases
			// A session that asks meanwhile, as on a busy machine, has the lock before all are passed over.
			if least := dead / inOneScript; s.IsMini() && (releases < least || releases > least+4) {
				t.Errorf("%s: %d releases have passed %d entries over, want %d in each", what, releases, dead, inOneScript)
			}
			later := c.costs(30)
			t.Logf("%s: usually a hand-over costs %d commands, to pass them over %d, later %d", what, slices.Max(usual), first, later)
			// Of each: who listens, when it was heard of, its position, its new one, and which come next.
			total := first
			for _, n := range later {
				total += n
			}
			if most := dead*6 + 80*(dead/inOneScript+len(later)); total > most {
				t.Errorf("%s: %d hand-overs past %d entries have cost %d commands, want %d at most", what, len(later)+1, dead, total, most)
			}
			if n := slices.Min(later); n > slices.Max(usual) {
				t.Errorf("%s: later a hand-over costs %d commands at least, without them %d", what, n, slices.Max(usual))
			}
			if n := slices.Max(later); s.IsMini() && n > slices.Max(usual)+inOneScript {
				t.Errorf("%s: later a hand-over costs %d commands, without them %d", what, n, slices.Max(usual))
			}
			c.end()
		}
	})
}
