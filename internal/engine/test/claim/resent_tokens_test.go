package claim_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// attempts returns a Trace that tells of the attempts that got no answer, and of those that Redis
// refused.
func attempts() (trace *rlock.Trace, failed, refused chan struct{}) {
	failed, refused = make(chan struct{}, 100), make(chan struct{}, 100)
	return &rlock.Trace{Attempt: func(e locktrace.Attempt) {
		switch {
		case e.Err != nil:
			failed <- struct{}{}
		case !e.Granted:
			refused <- struct{}{}
		}
	}}, failed, refused
}

// An acquire reserves tokens for the waiters that there are, its answer is lost, and it is sent
// again when there are more. Each section has a token of its own, greater than all before. The same if
// a release has granted the lock and has reserved them, and its message is lost.
func TestAResentAcquireUsesNoTokenTwice(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []struct {
			more    int
			granted bool
		}{{0, false}, {1, false}, {3, false}, {0, true}, {1, true}, {3, true}} {
			q := newFencedQueue(t, s)
			holder := q.hold(t)
			for range 3 {
				q.enter(t)
			}
			for range 2 { // before it listens, and when it does
				locktest.Get(t, q.refused, 5*time.Second, "a refusal")
			}
			if c.granted {
				q.grantUnheard(t, holder)
			} else {
				q.attemptUnanswered(t)
			}
			for range c.more {
				q.enter(t)
			}
			q.proxy.Refuse(false)
			q.allThrough(t)
			if !q.tokensGrow() {
				t.Errorf("%d more waiters, granted by a release %v: tokens %v", c.more, c.granted, q.tokens)
			}
			if !c.granted {
				locktest.Is(t, "Unlock", holder.Unlock(), rlock.ErrLost)
			}
			must(t, s.Do(t, "DEL", "redisson_lock_token:{"+q.name+"}").Error())
			locktest.NothingLeft(t, s, q.session, q.other)
		}
	})
}

// A fencedQueue has callers of one session that wait for a fenced lock, which another session holds, and the
// tokens in the order in which they were given.
type fencedQueue struct {
	server          *redistest.Server
	ctx             context.Context
	session, other  *rlock.Session
	proxy           *faulttest.Proxy // of session
	name            string
	failed, refused <-chan struct{} // attempts of session

	callers sync.WaitGroup
	mu      sync.Mutex // guards tokens
	tokens  []int64
}

func newFencedQueue(t *testing.T, s *redistest.Server) *fencedQueue {
	t.Helper()
	trace, failed, refused := attempts()
	ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Minute, Trace: trace})
	return &fencedQueue{
		server: s, ctx: within(t, 30*time.Second), session: ses, other: dial(t, s, rlock.Config{}),
		proxy: p, name: redistest.Name(t), failed: failed, refused: refused,
	}
}

// hold has the other session take the lock.
func (q *fencedQueue) hold(t *testing.T) *rlock.Hold {
	t.Helper()
	_, h, err := rlock.New(q.other, q.name, rlock.Fenced()).Lock(q.ctx)
	must(t, err)
	q.tokens = append(q.tokens, h.Token())
	return h
}

// enter adds one caller to the queue, which unlocks as soon as it is inside.
func (q *fencedQueue) enter(t *testing.T) {
	t.Helper()
	before := locktest.WaitersOf(q.session, q.name)
	q.callers.Go(func() {
		_, h, err := rlock.New(q.session, q.name, rlock.Fenced()).Lock(q.ctx)
		if err != nil {
			t.Error(err)
			return
		}
		locktest.Unhurried(q.session, q.name)
		q.mu.Lock()
		q.tokens = append(q.tokens, h.Token())
		q.mu.Unlock()
		if err := h.Unlock(); err != nil {
			t.Error(err)
		}
	})
	redistest.Eventually(t, 5*time.Second, "one more in the queue", func() bool { return locktest.WaitersOf(q.session, q.name) > before })
}

// grantUnheard has the holder's release grant the lock to the session, which does not hear of that and is cut off.
func (q *fencedQueue) grantUnheard(t *testing.T, holder *rlock.Hold) {
	t.Helper()
	q.proxy.DropMessages(true)
	must(t, holder.Unlock())
	if locktest.Free(t, q.server, q.name) {
		t.Error("the release granted the lock to nobody")
	}
	q.proxy.Refuse(true) // nothing else gets through
	q.proxy.DropMessages(false)
}

// attemptUnanswered has an attempt of the session take the lock, whose answer is lost; the session is cut off then.
func (q *fencedQueue) attemptUnanswered(t *testing.T) {
	t.Helper()
	ran, answer := q.proxy.HoldReply(locktest.Calls(t, "acquire"))
	must(t, q.server.Do(t, "DEL", q.name).Error()) // as its lease that is over: a release would grant the lock
	must(t, q.server.Do(t, "PUBLISH", locktest.Channel(q.name), "0").Error())
	locktest.Get(t, ran, 5*time.Second, "the attempt has run")
	q.proxy.Refuse(true) // the answer is lost, and nothing else gets through
	answer()
	locktest.Get(t, q.failed, 5*time.Second, "the attempt fails")
}

// allThrough waits until each caller has been inside.
func (q *fencedQueue) allThrough(t *testing.T) {
	t.Helper()
	through := make(chan struct{})
	go func() { q.callers.Wait(); close(through) }()
	// Their own looks at the TTL come 30 s later. (Who missed a grant looks when it is back.)
	locktest.Get(t, through, 5*time.Second+q.server.Slack(), "all get in, one after the other")
}

// tokensGrow reports whether each token is greater than all before. It may be called when all callers are through.
func (q *fencedQueue) tokensGrow() bool {
	return slices.IsSorted(q.tokens) && len(slices.Compact(slices.Clone(q.tokens))) == len(q.tokens)
}
