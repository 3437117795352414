package rwlock_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
)

// Phases take turns: readers that wait come in together when a writer leaves, before the next one of the line, and that
// before readers that have come since (scenario 41).
func TestReadersAndWritersTakeTurns(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !s.IsMini() {
			t.Skip("a busy machine may take longer than the 5 ms for which readers come first")
		}
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		trace, waits := locktest.Waiting()
		var writers, readers []*rlock.Session
		for range 4 {
			writers = append(writers, dial(t, s, far))
			readers = append(readers, dial(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace}))
		}
		other := rwlock.New(dial(t, s, far), name) // its readers join no others
		_, w := hold(t, ctx, other.Lock)
		waiting := stand(t, ctx, s, writers, name)
		for i, next := range waiting {
			var phase []<-chan locked
			for _, ses := range readers {
				phase = append(phase, goLock(ctx, rwlock.New(ses, name).RLock))
			}
			for range phase {
				locktest.Get(t, waits, 5*time.Second, "the readers to wait")
			}
			must(t, w.Unlock())
			var reads []*rlock.Hold
			for _, c := range phase {
				reads = append(reads, in(t, c, 5*time.Second, fmt.Sprintf("a reader before writer %d", i+1)).hold)
			}
			notIn(t, next, "a writer beside readers")
			redistest.Eventually(t, 5*time.Second, "the writer to keep readers out", func() bool {
				_, ok := markUntil(t, s, name)
				return ok
			})
			busy(ctx, 10*time.Millisecond) // the moment for those that waited is over
			refused(t, ctx, other.TryRLock, "a reader that comes later")
			for _, r := range reads {
				must(t, r.Unlock())
			}
			w = in(t, next, 5*time.Second, "the writer").hold
		}
		must(t, w.Unlock())
		nothingLeft(t, s)
	})
}

// The first writer of the line asks by itself just when another one leaves: the readers that wait come in before it.
func TestAWriterThatAsksWhenTheGateOpensComesBehindTheReaders(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		if !s.IsMini() {
			t.Skip("a busy machine may take longer than the millisecond in which the writer asks")
		}
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		trace, waits := locktest.Waiting()
		answers := make(chan locktrace.Attempt, 100)
		_, w := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
		ses, p := locktest.DialProxy(t, s, rlock.Config{PollFloor: 100 * time.Millisecond, Trace: &rlock.Trace{Attempt: func(a locktrace.Attempt) { answers <- a }}})
		next := stand(t, ctx, s, []*rlock.Session{ses}, name)[0]
		reads, ofReader := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace})
		reader := goLock(ctx, rwlock.New(reads, name).RLock)
		locktest.Get(t, waits, 5*time.Second, "the reader to wait")
		busy(ctx, 20*time.Millisecond) // the writer listens by now, and has said so
		for len(answers) > 0 {
			<-answers
		}
		looks, look := p.HoldRequest(calls("acquire_write"))
		defer look()
		locktest.Get(t, looks, 5*time.Second, "a look of the writer")
		tries, try := ofReader.HoldRequest(calls("acquire_read"))
		defer try()
		must(t, w.Unlock())
		locktest.Get(t, tries, 5*time.Second, "the reader's attempt")
		look()
		if a := locktest.Get(t, answers, 5*time.Second, "the answer to the writer"); a.Granted {
			t.Error("the writer is in before the reader that has waited for another one")
		}
		try()
		r := in(t, reader, 5*time.Second, "the reader").hold
		notIn(t, next, "a writer beside a reader")
		must(t, r.Unlock())
		must(t, in(t, next, 5*time.Second, "the writer").hold.Unlock())
		nothingLeft(t, s)
	})
}

// comebacks are the ways in which a writer leaves before one comes back.
var comebacks = []struct {
	what      string
	owner     string // of the one that leaves; '': it has no name
	downgrade bool
	line      []string // what stands in the line besides
}{
	{"leaves", "", false, nil}, {"a named one leaves", "me", false, nil}, {"becomes a reader", "", true, nil},
	{"leaves, and another reader has booked", "", false, []string{"-6999999999999001", "b:x", "4990000000000000", "sx"}},
}

// A writer leaves, or becomes a reader, while readers wait and no other writer does. One that comes before they have asked,
// as the one that left in a loop, comes in behind them.
func TestAWriterThatComesBackLetsReadersIn(t *testing.T) {
	for _, c := range comebacks {
		t.Run(c.what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				if !s.IsMini() {
					t.Skip("a busy machine may take longer than the 5 ms for which readers come first")
				}
				ctx, name := within(t, 30*time.Second), redistest.Name(t)
				owner := ctx
				if c.owner != "" {
					owner = rlock.WithOwner(ctx, c.owner)
				}
				answers := make(chan locktrace.Attempt, 100)
				leaves := rwlock.New(dial(t, s, far), name)
				section, w := hold(t, owner, leaves.Lock)
				var downgraded *rlock.Hold
				if c.downgrade {
					_, downgraded = hold(t, section, leaves.RLock)
				}
				trace, waits := locktest.Waiting()
				reads, ofReader := locktest.DialProxy(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace})
				reader := goLock(ctx, rwlock.New(reads, name).RLock)
				locktest.Get(t, waits, 5*time.Second, "the reader to wait")
				busy(ctx, 20*time.Millisecond) // it listens by now
				tries, try := ofReader.HoldRequest(calls("acquire_read"))
				defer try()
				line := "relock_line1:{" + name + "}"
				if c.line != nil {
					must(t, s.Do(t, append([]string{"ZADD", line}, c.line...)...).Error())
					must(t, s.Do(t, "PEXPIRE", line, "60000").Error())
				}
				must(t, w.Unlock())
				locktest.Get(t, tries, 5*time.Second, "the reader's attempt")
				ses := dial(t, s, rlock.Config{PollFloor: time.Hour, Trace: &rlock.Trace{Attempt: func(a locktrace.Attempt) { answers <- a }}})
				next := goLock(ctx, rwlock.New(ses, name).Lock)
				if a := locktest.Get(t, answers, 5*time.Second, "the answer to the writer"); a.Granted {
					t.Error("the writer is in before the reader that has waited for another one")
				}
				try()
				r := in(t, reader, 5*time.Second, "the reader").hold
				notIn(t, next, "a writer beside a reader")
				must(t, r.Unlock())
				if downgraded != nil {
					must(t, downgraded.Unlock())
				}
				must(t, in(t, next, 5*time.Second, "the writer").hold.Unlock())
				if c.line != nil {
					must(t, s.Do(t, "DEL", line).Error())
				}
				nothingLeft(t, s)
			})
		})
	}
}

// A session's writer stood first in the line, listened, and said so; a reader of that session waits behind it. When the
// next session's writer leaves, the reader comes in before the one behind that: what the writer has said of the
// session's subscription does not hide that a reader listens by it.
func TestAReaderBehindAWriterOfItsSessionIsHeardOf(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		trace, waits := locktest.Waiting()
		answers := make(chan locktrace.Attempt, 100)
		trace.Attempt = func(a locktrace.Attempt) { answers <- a }
		ses := dial(t, s, rlock.Config{PollFloor: time.Hour, Trace: trace})
		_, w := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
		third, ofThird := locktest.DialProxy(t, s, far)
		waiting := stand(t, ctx, s, []*rlock.Session{ses, dial(t, s, far), third}, name)
		locktest.AwaitListens(t, s, name) // the first writer does
		reader := goLock(ctx, rwlock.New(ses, name).RLock)
		for _, who := range []string{"the first writer", "the reader behind it"} {
			locktest.Get(t, waits, 5*time.Second, who+" to wait")
		}
		must(t, w.Unlock())
		must(t, in(t, waiting[0], 5*time.Second, "the first writer").hold.Unlock())
		w = in(t, waiting[1], 5*time.Second, "the second writer").hold
		for a := (locktrace.Attempt{}); a.Kind != "read"; {
			a = locktest.Get(t, answers, 5*time.Second, "an attempt of the reader")
		}
		_, ask := ofThird.HoldRequest(calls("acquire_write")) // which it sends if the reader takes longer than it comes first
		defer ask()
		must(t, w.Unlock())
		r := in(t, reader, 5*time.Second, "the reader").hold
		notIn(t, waiting[2], "the third writer beside the reader")
		ask()
		must(t, r.Unlock())
		must(t, in(t, waiting[2], 5*time.Second, "the third writer").hold.Unlock())
		nothingLeft(t, s)
	})
}

// The clock of Redis has leapt back by an hour since a writer opened the gate: that keeps the next one out for no hour.
// The line is written as mark.lua says, for a clock cannot be set.
func TestALeapOfTheClockKeepsNoWriterOut(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx, name := within(t, 30*time.Second), redistest.Name(t)
		_, w := hold(t, ctx, rwlock.New(dial(t, s, far), name).Lock)
		next := stand(t, ctx, s, []*rlock.Session{dial(t, s, rlock.Config{PollFloor: 100 * time.Millisecond})}, name)[0]
		clock, err := s.Do(t, "TIME").AsStrSlice()
		must(t, err)
		seconds, err := strconv.ParseInt(clock[0], 10, 64)
		must(t, err)
		must(t, s.Do(t, "ZADD", "relock_line1:{"+name+"}", fmt.Sprint(int64(8.5e15)+seconds*1000+time.Hour.Milliseconds()), "t").Error())
		must(t, s.Do(t, "DEL", name).Error())
		must(t, in(t, next, 5*time.Second, "the writer").hold.Unlock())
		locktest.Is(t, "Unlock", w.Unlock(), rlock.ErrLost)
	})
}
