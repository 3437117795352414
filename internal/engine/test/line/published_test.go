package line_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A javaEar listens to a lock's channel, as a Java process that waits for the lock.
type javaEar struct {
	t     *testing.T
	s     *redistest.Server
	name  string
	heard <-chan string
}

// hears fails the test unless so many messages have come that the lock is free.
func (e *javaEar) hears(what string, want int) {
	e.t.Helper()
	const last = "the last"
	must(e.t, e.s.Do(e.t, "PUBLISH", locktest.Channel(e.name), last).Error())
	n := 0
	for msg := ""; msg != last; {
		switch msg = locktest.Get(e.t, e.heard, 10*time.Second, "a message"); msg {
		case "0":
			n++
		case last:
		default:
			e.t.Errorf("%s: Java does not know the message %q", what, msg)
		}
	}
	if n != want {
		e.t.Errorf("%s: Java was told %d times that the lock is free, want %d", what, n, want)
	}
}

// waitsBesideJava says who waits in the line.
var waitsBesideJava = map[string]struct {
	waits  bool // another session's caller, who
	owner  string
	opts   []rlock.LockOption
	dead   int // and so many who have died, in front
	grants bool
}{
	"nobody waits":                        {},
	"one waits":                           {waits: true, grants: true},
	"one waits with a lease":              {waits: true, opts: []rlock.LockOption{rlock.Lease(time.Minute)}},
	"one waits under a name":              {waits: true, owner: "order-17"},
	"all have died":                       {dead: 3},
	"some have died, and one waits":       {waits: true, dead: 3, grants: true},
	"all of many have died":               {dead: 40},
	"some have died, one waits by a name": {waits: true, owner: "order-17", dead: 3},
}

// Java waits beside a line. A release, or a ForceUnlock, either gives the lock to a session of the line, and then the key
// is never gone and Java is told nothing; or it leaves the key absent, and has published what Java expects: since nobody
// waits, since it is a round that is left open to Java, since the first one is called and asks by itself, or since all who
// stand there have died (scenario 35).
func TestWheneverTheLockIsFreeJavaIsTold(t *testing.T) {
	t.Parallel()
	for what, c := range waitsBesideJava {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				r := newContest(t, s) // of two, with turns of their own
				holder, other := dial(t, s, rlock.Config{PollFloor: time.Hour}), dial(t, s, rlock.Config{PollFloor: time.Hour, Trace: r.trace()})
				name, ctx := r.name, r.ctx
				ear := &javaEar{t, s, name, locktest.Hears(t, s, locktest.Channel(name))}
				m := rlock.New(holder, name)
				granted := int64(0)
				for round := range 24 {
					section, h, err := m.Lock(ctx)
					must(t, err)
					var next <-chan locktest.Locked
					if c.waits {
						own := ctx
						if c.owner != "" {
							own = rlock.WithOwner(ctx, c.owner)
						}
						next = locktest.GoLock(rlock.New(other, name), own, c.opts...)
						locktest.AwaitInLine(t, s, name, other)
					}
					if c.dead > 0 {
						deadEntries(t, s, name, c.dead, 0)
					}
					ear.hears("while it is held", 0)
					locktest.Stays(t, ctx, about(time.Millisecond)) // microseconds are dice
					if forced := round%3 == 2; forced {
						forceUnlock(t, section, h, rlock.New(other, name))
					} else {
						must(t, h.Unlock())
					}
					if !c.waits {
						locktest.Quiet(t, holder)
						ear.freed(1)
						continue
					}
					got := locktest.Get(t, next, 10*time.Second, fmt.Sprint("the other's Lock in round ", round))
					must(t, got.Err)
					want := 1
					if c.grants { // or not: then the round is open, as it is told
						redistest.Eventually(t, 10*time.Second, "the message of the line", func() bool { return r.granted.Load()+r.open.Load() > int64(round) })
						want -= int(r.granted.Load() - granted)
						granted = r.granted.Load()
					}
					ear.hears("when the other has the lock", want)
					must(t, got.Hold.Unlock())
					ear.freed(1)
				}
				t.Logf("%d grants", granted)
				if c.waits && c.grants != (granted > 0) || granted == 24 {
					t.Errorf("of 24 releases %d gave the lock to the other", granted)
				}
			})
		})
	}
}

// forceUnlock ends a hold by another session's handle, and unlocks it when its section has ended: an Unlock that has not heard
// of that asks Redis, and has the line go on once more.
func forceUnlock(t *testing.T, section context.Context, h *rlock.Hold, by *rlock.Mutex) {
	t.Helper()
	_, err := by.ForceUnlock(t.Context())
	must(t, err)
	locktest.Get(t, section.Done(), 10*time.Second, "the end of the holder's section")
	locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
}

// freed checks that so many messages have come, and that the lock is free.
func (e *javaEar) freed(want int) {
	e.t.Helper()
	e.hears("when the lock is free", want)
	if n, err := e.s.Do(e.t, "EXISTS", e.name).AsInt64(); err != nil || n != 0 {
		e.t.Errorf("the lock stands when nobody has it: %d, %v", n, err)
	}
}
