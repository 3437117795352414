package line_test

import (
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// stopped writes the entry of a session that hears its messages and does nothing, as line.lua says. A writer or a reader
// comes now, a slow taker came a second ago.
func stopped(t *testing.T, s *redistest.Server, name, letter, away, owner string) {
	t.Helper()
	const session = "gone"
	clock, err := s.Do(t, "TIME").AsIntSlice()
	must(t, err)
	now := clock[0]*1000 + clock[1]/1000
	position := now * 1000
	switch letter {
	case "R":
		position = 8_800_000_000_000_000 + now
	case "z", "U":
		position -= 1_000_000
	}
	entry := letter + away + "1250" + "0600000" + "00004" + session + owner
	must(t, s.Do(t, "ZADD", locktest.LineOf(name), score(position), entry, score(5_000_000_000_000_000-now-600_000), "s"+session).Error())
	must(t, s.Do(t, "PEXPIRE", locktest.LineOf(name), "600000").Error())
	locktest.Hears(t, s, "relock_session:"+session)
}

func score(n int64) string { return strconv.FormatInt(n, 10) }

// Behind two writers that were called and have stopped the third one is called too, and does not wait until its session
// looks by itself.
func TestTheWriterBehindTwoThatHaveStoppedGetsIn(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		name, ctx := redistest.Name(t), within(t, time.Minute)
		holder, err := hold(rwlock.New(dial(t, s, calledConfig), name), ctx)
		must(t, err)
		stopped(t, s, name, "N", "000", "a")
		stopped(t, s, name, "N", "000", "b")
		locktest.Stays(t, ctx, 2*time.Millisecond) // in a bubble all would come at the same time, and stand in any order
		third := locktest.GoLock(rwlock.New(dial(t, s, calledConfig), name), ctx)
		stands(t, s, name, 3)
		must(t, holder.Unlock())
		got := locktest.Get(t, third, 10*time.Second, "the third writer")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	})
}

// The last reader leaves while another one is waited for, who has stopped, as has the first of the writers that wait.
func TestTheSecondWriterGetsInBehindReadersThatHaveStopped(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		name, ctx := redistest.Name(t), within(t, time.Minute)
		writer, err := hold(rwlock.New(dial(t, s, calledConfig), name), ctx)
		must(t, err)
		in := locktest.GoLock(farReader(dial(t, s, calledConfig), name), ctx)
		stands(t, s, name, 1)
		stopped(t, s, name, "R", "900", ":1")
		must(t, writer.Unlock())
		reader := locktest.Get(t, in, 10*time.Second, "the reader")
		must(t, reader.Err)
		stopped(t, s, name, "N", "000", "me")
		locktest.Stays(t, ctx, 2*time.Millisecond)
		next := locktest.GoLock(rwlock.New(dial(t, s, calledConfig), name), ctx)
		stands(t, s, name, 3)
		must(t, reader.Hold.Unlock())
		got := locktest.Get(t, next, 10*time.Second, "the second writer")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	})
}

// However long one is waited for who was called and has stopped, no reader that comes meanwhile passes the writers that wait.
func TestAReaderThatComesDoesNotPassWritersWhileOneIsWaitedFor(t *testing.T) {
	for what, c := range map[string]struct {
		before        func(ses *rlock.Session, name string) locktest.Mutex
		letter, owner string
	}{
		"a reader": {func(ses *rlock.Session, name string) locktest.Mutex { return rwlock.New(ses, name) }, "R", ":1"},
		"a writer": {farReader, "N", "me"},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				name, ctx := redistest.Name(t), within(t, time.Minute)
				before, err := hold(c.before(dial(t, s, calledConfig), name), ctx)
				must(t, err)
				stopped(t, s, name, c.letter, "999", c.owner)
				locktest.Stays(t, ctx, 2*time.Millisecond)
				writes := locktest.GoLock(rwlock.New(farDial(t, s, 300*time.Millisecond, calledConfig), name), ctx)
				stands(t, s, name, 2)
				locktest.Stays(t, ctx, 500*time.Millisecond) // nothing is on its way any more
				must(t, before.Unlock())
				reads := locktest.GoLock(farReader(dial(t, s, calledConfig), name), ctx)
				stands(t, s, name, 3)
				inTurn(t, writes, reads)
			})
		})
	}
}

// A session that is called, behind a slow taker that is passed by, is let in when it asks. It is not refused until the time
// is over for which the lock is left to it.
func TestTheCalledOneBehindASlowTakerIsNotKeptOut(t *testing.T) {
	const trip = 200 * time.Millisecond
	for letter, lock := range map[string]func(ses *rlock.Session, name string) locktest.Mutex{
		"z": func(ses *rlock.Session, name string) locktest.Mutex { return rlock.New(ses, name) },
		"U": func(ses *rlock.Session, name string) locktest.Mutex { return rwlock.New(ses, name) },
	} {
		t.Run(letter, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				name, ctx := redistest.Name(t), within(t, time.Minute)
				far := farDial(t, s, trip, calledConfig)
				holder, err := hold(lock(dial(t, s, calledConfig), name), ctx)
				must(t, err)
				stopped(t, s, name, letter, "000", ":7")
				called := locktest.GoLock(lock(far, name), rlock.WithOwner(ctx, "me"))
				stands(t, s, name, 2)
				locktest.Stays(t, ctx, 2*trip) // nothing is on its way any more
				began := time.Now()
				must(t, holder.Unlock())
				got := locktest.Get(t, called, 10*time.Second, "the called one")
				must(t, got.Err)
				if d := got.At.Sub(began); redistest.MadeUpClock() && d > 2*trip {
					t.Errorf("it was let in after %v, of a round trip of %v", d, trip)
				}
				must(t, got.Hold.Unlock())
			})
		})
	}
}
