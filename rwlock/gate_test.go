package rwlock_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// All readers of a session that waited for a writer come in when it has left, also if none can join another's claim: the
// session has one entry in the line.
func TestReadersOfASessionThatShareNoClaimComeInTogether(t *testing.T) {
	leased := []rlock.LockOption{rlock.Lease(20 * time.Second)}
	for what, c := range map[string]struct {
		limit int
		opts  []rlock.LockOption
		named bool
	}{"leases": {opts: leased}, "names": {named: true}, "no hand-over": {limit: -1}} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx, name := within(t, 30*time.Second), redistest.Name(t)
				cfg := far
				cfg.HandOverLimit = c.limit
				ses := dial(t, s, cfg)
				_, w := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
				next := stand(t, ctx, s, []*rlock.Session{dial(t, s, far)}, name)
				var waiting []<-chan locked
				for i := range 3 {
					owner := ctx
					if c.named {
						owner = rlock.WithOwner(ctx, fmt.Sprint("me", i))
					}
					waiting = append(waiting, goLock(owner, rwlock.New(ses, name).RLock, c.opts...))
					readersWait(t, s, name, 1)
					busy(ctx, 20*time.Millisecond)
				}
				must(t, w.Unlock())
				for _, r := range waiting {
					h, other := oneOf(t, r, next[0], 5*time.Second, what+": a reader")
					if other == r { // a busy machine has taken longer than a reader is waited for
						must(t, h.Unlock())
						h = in(t, r, 5*time.Second, what+": a reader behind the writer").hold
					}
					if redistest.MadeUpClock() {
						defer h.Unlock()
					} else { // so that the next writer comes, should another reader be late
						must(t, h.Unlock())
					}
				}
				if redistest.MadeUpClock() {
					notIn(t, next[0], what+": readers are inside")
				}
			})
		})
	}
}

// A reader that was too late once, and met the next writer, comes in behind that one.
func TestAReaderThatWasLateIsWaitedForAgain(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 60*time.Second), redistest.Name(t)
		_, w := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
		next := stand(t, ctx, s, []*rlock.Session{dial(t, s, far), dial(t, s, far)}, name)
		reads, p := locktest.DialProxy(t, s, far)
		r := goLock(ctx, rwlock.New(reads, name).RLock)
		readersWait(t, s, name, 1)
		busy(ctx, 20*time.Millisecond)
		held, release := p.HoldRequest(calls("acquire_read"))
		must(t, w.Unlock())
		locktest.Get(t, held, 5*time.Second, "the reader's attempt")
		var other <-chan locked
		w, other = oneOf(t, next[0], next[1], 5*time.Second, "a writer, which waits for the reader no longer")
		answered := p.Count("EVALSHA")
		release()
		redistest.Eventually(t, 5*time.Second, "the reader's attempt", func() bool { return p.Count("EVALSHA") > answered-1 })
		busy(ctx, 3*time.Millisecond)
		must(t, w.Unlock())
		for first, second := r, other; first != nil || second != nil; {
			select {
			case got := <-first:
				must(t, got.err)
				must(t, got.hold.Unlock())
				first = nil
			case got := <-second:
				must(t, got.err)
				if first != nil && redistest.MadeUpClock() { // a busy machine may take longer than the 5 ms that it is waited for
					t.Error("the next writer came in before the reader")
				}
				must(t, got.hold.Unlock())
				second = nil
			}
		}
		nothingLeft(t, s)
	})
}

// oneOf returns the lock of the first of two sessions in the line, and what the other one waits at. On a busy machine the second
// may come before the first, which is passed by while it is slow to answer.
func oneOf(t *testing.T, first, second <-chan locked, within time.Duration, what string) (*rlock.Hold, <-chan locked) {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case got := <-first:
		must(t, got.err)
		return got.hold, second
	case got := <-second:
		must(t, got.err)
		if redistest.MadeUpClock() {
			t.Errorf("the second came before the first: %s", what)
		}
		return got.hold, first
	case <-timer.C:
		t.Fatalf("not within %v: %s", within, what)
	}
	return nil, nil
}

// Where the session of the first reader is there no more, the second one knows when a lock ends, or Redisson leaves it.
func TestTheSecondReaderStandsInForTheFirst(t *testing.T) {
	const quick, patience = 3 * time.Second, 60 * time.Second
	for what, leave := range map[string]func(t *testing.T, s *redistest.Server, name string){
		"a host dies": func(*testing.T, *redistest.Server, string) {},
		"Redisson": func(t *testing.T, s *redistest.Server, name string) {
			must(t, s.Do(t, "DEL", name).Error())
			for _, m := range []string{"1", "0"} {
				must(t, s.Do(t, "PUBLISH", "redisson_rwlock:{"+name+"}", m).Error())
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				ctx, name := within(t, 10*time.Minute), redistest.Name(t)
				must(t, s.Do(t, "HSET", name, "mode", "write", "c9e4c8a2-0000-0000-0000-000000000000:1:write", "1").Error())
				must(t, s.Do(t, "PEXPIRE", name, "2000").Error())
				if what == "Redisson" {
					must(t, s.Do(t, "PEXPIRE", name, "600000").Error())
				}
				dead, p := locktest.DialProxy(t, s, far)
				goLock(ctx, rwlock.New(dead, name).RLock)
				readersWait(t, s, name, 1)
				var waiting []<-chan locked
				for i := range 3 {
					waiting = append(waiting, goLock(ctx, rwlock.New(dial(t, s, far), name).RLock))
					readersWait(t, s, name, int64(i+2))
					busy(ctx, 20*time.Millisecond)
				}
				p.BlackHole(true)
				began := time.Now()
				leave(t, s, name)
				for _, r := range waiting {
					defer in(t, r, patience, what+": a reader").hold.Unlock()
				}
				if d := time.Since(began); d > quick {
					t.Errorf("%s: the readers are in after %v", what, d)
				}
			})
		})
	}
}

// A session of readers that has stopped costs a writer that comes back at once 5 ms, once.
func TestAReaderThatHasStoppedCostsAWriterLittle(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 60*time.Second), redistest.Name(t)
		locktest.Hears(t, s, "relock_session:dead") // it is subscribed, and does nothing
		m := rwlock.New(dial(t, s, far), name)
		_, w := hold(t, ctx, m.Lock)
		score := strconv.FormatInt(readersScore+now(t, s)-60_000, 10) // it came a minute ago
		must(t, s.Do(t, "ZADD", "relock_line1:{"+name+"}", score, "R0001250000100000004dead:1").Error())
		must(t, s.Do(t, "PEXPIRE", "relock_line1:{"+name+"}", "60000").Error())
		must(t, w.Unlock())
		left := 0
		for range 10 {
			if inLine(t, s, name, "R") > 0 {
				left++
			}
			_, w := hold(t, ctx, m.Lock)
			must(t, w.Unlock())
		}
		if left > 2 {
			t.Errorf("its entry was there before %d of 10 rounds, want 2 at most: it is called, and called once more", left)
		}
	})
}

// Redis's clock has leapt back since readers came: a writer that leaves calls them all the same.
func TestALeapOfTheClockKeepsNoReadersOut(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		line := "relock_line1:{" + name + "}"
		_, w := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
		var waiting []<-chan locked
		for i := range 3 {
			waiting = append(waiting, goLock(ctx, rwlock.New(dial(t, s, far), name).RLock))
			readersWait(t, s, name, int64(i+1))
		}
		busy(ctx, 20*time.Millisecond)
		all, err := s.Do(t, "ZRANGEBYSCORE", line, "8.7e15", "+inf").AsStrSlice()
		must(t, err)
		for _, e := range all {
			must(t, s.Do(t, "ZINCRBY", line, "60000", e).Error())
		}
		must(t, w.Unlock())
		for _, r := range waiting {
			defer in(t, r, 2*time.Second, "a reader").hold.Unlock()
		}
	})
}

// Of more sessions with readers than a script calls, those that come in call the rest.
func TestManyReadersAreCalledByThoseThatComeIn(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, cmd := range setup(writer, ttl) {
			must(t, s.Do(t, cmd...).Error())
		}
		run := func(script string, keys, args []string) {
			t.Helper()
			cmd := append([]string{"EVAL", rwlock.ScriptSources()[script], strconv.Itoa(len(keys))}, keys...)
			must(t, s.Do(t, append(cmd, args...)...).Error())
		}
		ear := locktest.Hears(t, s, "s:299")
		for i := range 300 {
			must(t, s.Do(t, "ZADD", "W", fmt.Sprint(readersScore+longAgo+int64(i)), yoursR+fmt.Sprintf("%03d", i)).Error())
		}
		run("release_write", relW, uncounted(endingW(endAll, "", ""))) // as in a Cluster: nobody is taken off
		must(t, s.Do(t, "PUBLISH", "s:299", "not called yet").Error())
		locktest.Get(t, ear, 5*time.Second, "a message")
		run("acquire_read", locktest.Keys("lock", "R", "W", "T"), args("000", "30001", "", "0", "0", "", yoursR, "0", "s:", "0", "0"))
		must(t, s.Do(t, "PUBLISH", "s:299", "end").Error())
		if m := locktest.Get(t, ear, 5*time.Second, "a message"); m == "end" {
			t.Error("the last one was not called by the first that has come in")
		}
	})
}

// now is the server's time in ms.
func now(t testing.TB, s *redistest.Server) int64 {
	t.Helper()
	clock, err := s.Do(t, "TIME").AsStrSlice()
	must(t, err)
	sec, err := strconv.ParseInt(clock[0], 10, 64)
	must(t, err)
	return sec * 1000
}

// An entry of a named owner that wanted to read, and waits to write by now, is taken out of the line when it is called.
func TestAReadersEntryOfAnOwnerThatWritesIsDismissed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		_, w := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
		ses := dial(t, s, far)
		next := goLock(rlock.WithOwner(ctx, "me"), rwlock.New(ses, name).Lock)
		redistest.Eventually(t, 5*time.Second, "the writer in the line", func() bool { return writersWaiting(t, s, name) == 1 })
		entry := "S000125001500000" + fmt.Sprintf("%05d", len(ses.ID()))[1:] + ses.ID() + strings.Repeat("0", 32) + "me"
		must(t, s.Do(t, "ZADD", "relock_line1:{"+name+"}", strconv.FormatInt(readersScore+now(t, s)-1000, 10), entry).Error())
		readersWait(t, s, name, 1)
		must(t, w.Unlock())
		writer := in(t, next, 5*time.Second, "the writer")
		readersWait(t, s, name, 0)
		must(t, writer.hold.Unlock())
		nothingLeft(t, s)
	})
}
