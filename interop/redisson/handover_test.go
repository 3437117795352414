package redisson

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

const handOverCycles = 100

// TestHandOver passes a lock round, from Go to Go, to Java, to Java, to Go, four processes'
// worth of clients, each of which waits for a message by the time it is released, and
// reports how long each way takes. That they are woken at all is what fails or not.
func TestHandOver(t *testing.T) {
	e := single(t, dialect{})
	peers := []*peer{startPeer(t, e), startPeer(t, e)}
	name := redistest.Name(t)
	round := []client{
		&goClient{t: t, name: name, s: e.session(t, patient)}, &goClient{t: t, name: name, s: e.session(t, patient)},
		&javaClient{name: name, th: peers[0].thread(t)}, &javaClient{name: name, th: peers[1].thread(t)},
	}
	gaps := map[string][]time.Duration{}
	holder := round[0]
	holder.wait(false)
	holder.in()
	for i := 1; i <= len(round)*(handOverCycles+10); i++ {
		next := round[i%len(round)]
		next.wait(true)
		left := holder.leave()
		entered := next.in()
		if i > len(round)*10 { // Java is slow at first
			way := holder.side() + "->" + next.side()
			gaps[way] = append(gaps[way], entered.Sub(left))
		}
		holder = next
	}
	holder.leave()
	t.Log(describeGaps(gaps))
}

// A client is one that takes part in the round.
type client interface {
	side() string
	wait(held bool)   // begin to wait; return when it waits, if somebody holds the lock
	in() time.Time    // when it was in
	leave() time.Time // when it began to leave
}

type goClient struct {
	t    *testing.T
	name string
	s    *side
	c    <-chan gotAt
	h    *rlock.Hold
}

type gotAt struct {
	h   *rlock.Hold
	at  time.Time
	err error
}

func (c *goClient) side() string { return "go" }

func (c *goClient) wait(held bool) {
	results := make(chan gotAt, 1)
	c.c = results
	ctx := locktest.Within(c.t, time.Minute)
	begin := func() {
		go func() {
			_, h, err := rlock.New(c.s.Session, c.name).Lock(ctx)
			results <- gotAt{h, time.Now(), err}
		}()
	}
	if held {
		c.s.waits(c.t, c.name, begin)
	} else {
		begin()
	}
}

func (c *goClient) in() time.Time {
	g := locktest.Get(c.t, c.c, wokenWithin, "a message wakes the Go side")
	locktest.Must(c.t, g.err)
	c.h = g.h
	return g.at
}

func (c *goClient) leave() time.Time {
	now := time.Now()
	locktest.Must(c.t, c.h.Unlock())
	return now
}

type javaClient struct {
	name string
	th   *thread
	c    <-chan answer
}

func (c *javaClient) side() string { return "java" }

func (c *javaClient) wait(held bool) {
	c.c = c.th.start("lock", c.name, "lock")
	if held {
		c.th.waits(c.c)
	}
}

func (c *javaClient) in() time.Time {
	a := locktest.Get(c.th.t, c.c, wokenWithin, "a message wakes the Java side")
	locktest.Must(c.th.t, a.err)
	return a.ended
}

func (c *javaClient) leave() time.Time {
	a := locktest.Get(c.th.t, c.th.start("lock", c.name, "unlock"), answerTimeout, "Java unlocks")
	locktest.Must(c.th.t, a.err)
	return a.began
}
