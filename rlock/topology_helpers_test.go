package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// topoPatience bounds what should happen at once: long enough for a stalled CI
// machine, and shorter than any clock in a test that waits for a message.
const topoPatience = 20 * time.Second

// topoSlow is a Config in which nothing happens by the clock within topoPatience: a
// waiter looks again only when told to, and renewals are far apart.
func topoSlow() rlock.Config {
	return rlock.Config{Lease: 3 * time.Minute, PollFloor: time.Minute}
}

// topoDial makes a session, closed when the test ends. Close's error is for the test
// to judge: after a failover there may be releases that nobody can confirm.
func topoDial(t testing.TB, o rueidis.ClientOption, cfg rlock.Config) *rlock.Session {
	t.Helper()
	s, err := rlock.Dial(within(t, topoPatience), o, cfg)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Logf("Close: %v", err)
		}
	})
	return s
}

// topoNameOn returns a fresh name whose slot the node at addr serves.
func topoNameOn(t testing.TB, c *redistest.Cluster, addr string) string {
	t.Helper()
	for {
		if name := redistest.Name(t); c.SlotOwner(t, redistest.Slot(name)) == addr {
			return name
		}
	}
}

// topoOther returns a node of the cluster that is none of the given ones.
func topoOther(c *redistest.Cluster, not ...string) string {
	for _, addr := range c.Addrs {
		if !slices.Contains(not, addr) {
			return addr
		}
	}
	panic("no node is left")
}

// topoChannel is the channel of a name without braces.
func topoChannel(name string) string { return "redisson_lock__channel:{" + name + "}" }

// topoClusterKeys returns the keys of all nodes that live.
func topoClusterKeys(t testing.TB, c *redistest.Cluster) []string {
	t.Helper()
	var keys []string
	for _, addr := range c.Addrs {
		keys = append(keys, c.Node(addr).Keys(t)...)
	}
	return keys
}

// topoWait is a Lock that runs in a goroutine of its own.
type topoWait struct {
	ctx  context.Context
	hold *rlock.Hold
	err  error
	done chan struct{}
}

// topoLock begins to Lock.
func topoLock(ctx context.Context, m *rlock.Mutex, opts ...rlock.LockOption) *topoWait {
	w := &topoWait{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.ctx, w.hold, w.err = m.Lock(ctx, opts...)
	}()
	return w
}

// waits fails the test if the Lock has returned.
func (w *topoWait) waits(t testing.TB) {
	t.Helper()
	select {
	case <-w.done:
		t.Fatalf("Lock returned: %v", w.err)
	default:
	}
}

// granted waits for the Lock to succeed and returns how long that took.
func (w *topoWait) granted(t testing.TB, limit time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	select {
	case <-w.done:
	case <-time.After(limit):
		t.Fatalf("the waiter does not have the lock after %v", limit)
	}
	must(t, w.err)
	return time.Since(begin)
}

// topoEnds waits for a critical section to end with the given cause, and returns how
// long that took.
func topoEnds(t testing.TB, section context.Context, limit time.Duration, cause error) time.Duration {
	t.Helper()
	begin := time.Now()
	select {
	case <-section.Done():
	case <-time.After(limit):
		t.Fatalf("the critical section goes on after %v", limit)
	}
	if got := context.Cause(section); !errors.Is(got, cause) {
		t.Fatalf("cause %v, want %v", got, cause)
	}
	return time.Since(begin)
}

// topoStays fails the test if one of the sections ends within d.
func topoStays(t testing.TB, d time.Duration, sections ...context.Context) {
	t.Helper()
	over := time.After(d)
	ended := make(chan error, len(sections))
	for _, s := range sections {
		defer context.AfterFunc(s, func() { ended <- context.Cause(s) })()
	}
	select {
	case <-over:
	case err := <-ended:
		t.Fatalf("a critical section ended: %v", err)
	}
}

// topoIs fails the test unless err matches one of the wanted errors.
func topoIs(t testing.TB, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	t.Errorf("%s: %v, want %v", what, err, want)
}

// topoListening waits until the channel of a waiter is subscribed on the node, and on
// none of the others of the cluster.
func topoListening(t testing.TB, c *redistest.Cluster, channel, addr string) {
	t.Helper()
	redistest.Eventually(t, topoPatience, "the channel is subscribed on the slot's node alone", func() bool {
		return c.SubscribedOn(t, channel, addr)
	})
}

// topoSilent waits until the channel is subscribed nowhere.
func topoSilent(t testing.TB, c *redistest.Cluster, channel string) {
	t.Helper()
	topoListening(t, c, channel, "")
}

// topoCarrier returns the node on which the session's own channel is subscribed.
func topoCarrier(t testing.TB, c *redistest.Cluster, s *rlock.Session) (addr string) {
	t.Helper()
	redistest.Eventually(t, topoPatience, "the session listens on its own channel", func() bool {
		for _, a := range c.Addrs {
			list, err := c.Node(a).Do(t, "PUBSUB", "CHANNELS").AsStrSlice()
			if err == nil && slices.Contains(list, "relock_session:"+s.ID()) {
				addr = a
				return true
			}
		}
		return false
	})
	return addr
}

// topoDo runs a command on one server, which must not fail.
func topoDo(t testing.TB, s *redistest.Server, args ...string) {
	t.Helper()
	if err := s.Do(t, args...).Error(); err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
}

// topoField returns what a hash on one server has for a field, "" if nothing.
func topoField(t testing.TB, s *redistest.Server, key, field string) string {
	t.Helper()
	v, err := s.Do(t, "HGET", key, field).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		return fmt.Sprint(err)
	}
	return v
}
