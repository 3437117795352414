package locktest

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A Stage is one lock, and a session behind a proxy whose goroutines take turns with it.
type Stage struct {
	Passes
	T       *testing.T
	Server  *redistest.Server
	Proxy   *faulttest.Proxy
	Session *rlock.Session
	Ctx     context.Context
	Name    string
	Mutex   *rlock.Mutex
}

// NewStage makes a stage whose lock has a fresh name.
func NewStage(t *testing.T, s *redistest.Server, cfg rlock.Config) *Stage {
	t.Helper()
	st := &Stage{T: t, Server: s, Ctx: Within(t, 60*time.Second), Name: redistest.Name(t)}
	st.listens = func() bool {
		channels, err := s.Do(t, "PUBSUB", "CHANNELS", Channel(st.Name)).AsStrSlice()
		return err == nil && len(channels) == 1
	}
	cfg.Trace = st.Trace()
	st.Session, st.Proxy = DialProxy(t, s, cfg)
	st.Mutex = rlock.New(st.Session, st.Name)
	return st
}

// Lock takes the lock, which is free. Its time slice may last: it would be over by
// the time that a busy machine has come to the next step of the test.
func (st *Stage) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold) {
	st.T.Helper()
	section, h, err := st.Mutex.Lock(ctx, opts...)
	Must(st.T, err)
	Unhurried(st.Session, st.Name)
	return section, h
}

// Queue has one more goroutine wait at the end of the session's queue.
func (st *Stage) Queue(ctx context.Context, opts ...rlock.LockOption) <-chan Locked {
	st.T.Helper()
	return st.QueueFor(st.Mutex, ctx, opts...)
}

// QueueFor is Queue through a handle of the caller's.
func (st *Stage) QueueFor(m *rlock.Mutex, ctx context.Context, opts ...rlock.LockOption) <-chan Locked {
	st.T.Helper()
	before := WaitersOf(st.Session, st.Name)
	c := GoLock(m, ctx, opts...)
	redistest.Eventually(st.T, 10*time.Second, "one more in the queue", func() bool { return WaitersOf(st.Session, st.Name) > before })
	return c
}

// In returns what a waiter got, which must be the lock.
func (st *Stage) In(c <-chan Locked) Locked {
	st.T.Helper()
	got := Get(st.T, c, 10*time.Second, "the waiter is let in")
	Must(st.T, got.Err)
	return got
}

// HandOver unlocks h, and has the lock pass to the waiter in memory.
func (st *Stage) HandOver(h *rlock.Hold, next <-chan Locked) Locked {
	st.T.Helper()
	before := st.Count()
	Must(st.T, h.Unlock())
	got := st.In(next)
	// One behind a renewal is told of a moment later.
	redistest.Eventually(st.T, 5*time.Second, "one hand-over in memory", func() bool { return st.Count() == before+1 })
	return got
}

// Hash returns the lock as it stands in Redis.
func (st *Stage) Hash() map[string]string {
	st.T.Helper()
	h, err := st.Server.Do(st.T, "HGETALL", st.Name).AsStrMap()
	Must(st.T, err)
	return h
}

// Stands waits until the lock in Redis has one owner, the one that was let in last, who
// holds it so often.
func (st *Stage) Stands(count string) {
	st.T.Helper()
	owner := st.Last()
	redistest.Eventually(st.T, 5*time.Second, "the hash to be right", func() bool {
		h := st.Hash()
		return len(h) == 1 && h[owner] == count
	})
}

// Reached waits until a fault has struck.
func (st *Stage) Reached(seen <-chan struct{}) {
	st.T.Helper()
	Get(st.T, seen, 10*time.Second, "the command")
}

// Outside checks that a Lock or TryLock has not succeeded while somebody else is in.
func (st *Stage) Outside(c <-chan Locked, what string) {
	st.T.Helper()
	select {
	case got := <-c:
		st.T.Fatalf("%s: it returned while another was inside: %v", what, got.Err)
	default:
	}
}

// Start has n goroutines of the session at it. failed is asked about errors of Do; nil: each
// is one too many.
func (st *Stage) Start(n int, m *rlock.Mutex, work func(section context.Context), failed func(error) bool) *Crew {
	c := new(Crew)
	c.ctx, c.stop = context.WithCancel(st.Ctx)
	for range n {
		c.wg.Go(func() {
			for c.ctx.Err() == nil {
				err := m.Do(st.Ctx, func(section context.Context) error {
					work(section)
					return nil
				})
				if err != nil && (failed == nil || !failed(err)) {
					st.T.Error(err)
					return
				}
			}
		})
	}
	st.T.Cleanup(c.End)
	return c
}

// Runs waits for n hand-overs more.
func (st *Stage) Runs(n int) {
	st.T.Helper()
	until := st.Count() + n
	redistest.Eventually(st.T, 20*time.Second, "hand-overs", func() bool { return st.Count() >= until })
}

// OnlyOwner returns who holds the lock by Redis's word.
func OnlyOwner(t *testing.T, st *Stage) string {
	t.Helper()
	h := st.Hash()
	if len(h) != 1 {
		t.Fatalf("the lock is %v, want one owner", h)
	}
	for owner := range h {
		return owner
	}
	return ""
}

// AsksNoMore waits until the session is the first of the line, and has asked again when it listens.
func (st *Stage) AsksNoMore() {
	st.T.Helper()
	redistest.Eventually(st.T, 10*time.Second, "a refusal of a waiter that listens", st.Settled)
}
