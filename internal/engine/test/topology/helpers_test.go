package topology_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// topoOther returns a node of the cluster that is none of the given ones.
func topoOther(c *redistest.Cluster, not ...string) string {
	for _, addr := range c.Addrs {
		if !slices.Contains(not, addr) {
			return addr
		}
	}
	panic("no node is left")
}

// topoClusterKeys returns the keys of all nodes that live.
func topoClusterKeys(t testing.TB, c *redistest.Cluster) []string {
	t.Helper()
	var keys []string
	for _, addr := range c.Addrs {
		keys = append(keys, c.Node(addr).Keys(t)...)
	}
	return keys
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
	redistest.Eventually(t, locktest.Patience, "the channel is subscribed on the slot's node alone", func() bool {
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
	redistest.Eventually(t, locktest.Patience, "the session listens on its own channel", func() bool {
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
