package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"relock/internal/keyname"
	"relock/rlock"
)

// channels are what waiters of each kind of lock listen on, as Redisson names them.
var channels = map[string]string{
	kindMutex:     "redisson_lock__channel",
	kindRW:        "redisson_rwlock",
	kindSemaphore: "redisson_sc",
	kindCounter:   "redisson_sc",
	kindElection:  "redisson_lock__channel",
}

// channelsAtOnce bounds how many channels one PUBSUB NUMSUB asks for.
const channelsAtOnce = 500

// countWaiters adds who waits for each lock. A session counts once: in the line of a plain lock, if it stands
// there, or as one that listens. It returns how many commands that took.
func (s *server) countWaiters(ctx context.Context, locks []*Lock) (sent int, err error) {
	for _, count := range []func(context.Context, []*Lock) (int, error){s.countListeners, s.countLines, s.forgetOwn} {
		n, err := count(ctx, locks)
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// countListeners adds how many connections listen for each lock's release: one for each session that waits
// for another lock than a plain one, and one of a plain lock's line. It returns how many commands that took.
func (s *server) countListeners(ctx context.Context, locks []*Lock) (sent int, err error) {
	all := nodes(s.client)
	for part := range slices.Chunk(locks, channelsAtOnce) {
		names := make([]string, len(part))
		for i, l := range part {
			if names[i] = s.style.Prefix(channels[l.Kind], l.Name); l.Kind == kindLatch {
				names[i] = latchChannel(s.style, l.Name)
			}
			l.Wait = 0
		}
		var mu sync.Mutex
		err = onNodes(all, func(_ int, n node) error {
			// The builder of SHARDNUMSUB wants all channels in one slot; Redis does not.
			counts := n.DoMulti(ctx, n.B().PubsubNumsub().Channel(names...).Build(), n.B().Arbitrary("PUBSUB", "SHARDNUMSUB").Args(names...).Build())
			mu.Lock()
			defer mu.Unlock()
			sent += len(counts)
			for kind, r := range counts {
				reply, err := r.ToArray()
				if err != nil && kind == 0 {
					return fmt.Errorf("count waiting sessions: %w", err)
				} // sharded channels are of Redis 7 and later
				for i := 1; i < len(reply); i += 2 {
					subscribers, _ := reply[i].AsInt64()
					part[i/2].Wait += subscribers
				}
			}
			return nil
		})
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// linesAtOnce bounds how many lines are asked for at the same time.
const linesAtOnce = 16

// hasLine reports whether the sessions that wait for a lock of the kind stand in a line.
func hasLine(kind string) bool {
	return kind == kindMutex || kind == kindElection || kind == kindRW || kind == kindSemaphore || kind == kindCounter
}

// countLines adds the callers in the lines. It returns how many commands that took.
func (s *server) countLines(ctx context.Context, locks []*Lock) (sent int, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, linesAtOnce)
	for _, l := range locks {
		if !hasLine(l.Kind) {
			continue
		}
		sent += 2
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			var err1, err2 error
			l.Line, err1 = rlock.New(s.session, l.Name).Waiters(ctx)
			l.Fair, err2 = s.firstIsFair(ctx, l.Name)
			if e := errors.Join(err1, err2); e != nil {
				mu.Lock()
				err = e
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sent, err
}

// firstIsFair reports whether the first of the line waits for a fair lock.
func (s *server) firstIsFair(ctx context.Context, name string) (bool, error) {
	key := s.style.Prefix(keyname.Line, name)
	first, err := s.client.Do(ctx, s.client.B().Zrangebyscore().Key(key).Min("0").Max("+inf").Limit(0, 1).Build()).AsStrSlice()
	return len(first) > 0 && isFair(first[0]), err
}
