package line_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// A session that is called, and not given the lock, has two round trips to come, however far away it is: it would else
// be too late at each release, beside others who are near.
func TestAFarSessionThatIsCalledGetsItsTurn(t *testing.T) {
	plain := func(ses *rlock.Session, name string) locktest.Mutex { return rlock.New(ses, name) }
	writer := func(ses *rlock.Session, name string) locktest.Mutex { return rwlock.New(ses, name) }
	fenced := func(ses *rlock.Session, name string) locktest.Mutex {
		return rlock.New(ses, name, rlock.FencedFor(time.Hour))
	}
	for what, c := range map[string]struct {
		near, far func(ses *rlock.Session, name string) locktest.Mutex
		owner     string
		opts      []rlock.LockOption
		others    string // whom Redisson's clients listen to
	}{
		"plain, named":               {plain, plain, "me", nil, ""},
		"plain, a lease of its own":  {plain, plain, "", []rlock.LockOption{rlock.Lease(time.Minute)}, ""},
		"tokens with an end":         {fenced, fenced, "", nil, ""},
		"writer, named":              {writer, writer, "me", nil, ""},
		"writer, a lease of its own": {writer, writer, "", []rlock.LockOption{rlock.Lease(time.Minute)}, ""},
		"writer beside Redisson":     {writer, writer, "", nil, "redisson_rwlock:"},
		"reader":                     {writer, farReader, "", nil, ""},
		"reader, named":              {writer, farReader, "me", nil, ""},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				name, cfg := redistest.Name(t), calledConfig
				ctx := within(t, time.Minute)
				far := farDial(t, s, 200*time.Millisecond, cfg)
				if c.others != "" {
					locktest.Hears(t, s, c.others+"{"+name+"}")
				}
				holder, err := hold(c.near(dial(t, s, cfg), name), ctx)
				must(t, err)
				own := ctx
				if c.owner != "" {
					own = rlock.WithOwner(ctx, c.owner)
				}
				called := locktest.GoLock(c.far(far, name), own, c.opts...)
				stands(t, s, name, 1)
				locktest.Stays(t, ctx, time.Millisecond) // in a bubble both would come at the same time, and stand in any order
				behind := locktest.GoLock(c.near(dial(t, s, cfg), name), ctx)
				stands(t, s, name, 2)
				locktest.Stays(t, ctx, 300*time.Millisecond) // nothing is on its way any more
				must(t, holder.Unlock())
				inTurn(t, called, behind)
			})
		})
	}
}

// inTurn checks that two callers are let in one after the other, and unlocks for both.
func inTurn(t *testing.T, first, second <-chan locktest.Locked) {
	t.Helper()
	got := locktest.Get(t, first, 10*time.Second, "the first")
	must(t, got.Err)
	select {
	case <-second:
		t.Error("the second was let in before the first had left")
	default:
	}
	must(t, got.Hold.Unlock())
	got = locktest.Get(t, second, 10*time.Second, "the second")
	must(t, got.Err)
	must(t, got.Hold.Unlock())
}

// A session to which one answer was late while it connected is not taken for one that is far away.
func TestAStallWhileASessionConnectsDoesNotMakeItFar(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		name, ctx := redistest.Name(t), within(t, time.Minute)
		holder, err := hold(rlock.New(dial(t, s, calledConfig), name), ctx)
		must(t, err)
		p, _ := faulttest.Of(t, s.Option())
		p.DelayReply(400*time.Millisecond, func(cmd []string) bool { return cmd[0] == "PING" })
		called := locktest.GoLock(rlock.New(locktest.DialVia(t, s, p, calledConfig), name), rlock.WithOwner(ctx, "me"))
		stands(t, s, name, 1)
		members, err := s.Do(t, "ZRANGE", locktest.LineOf(name), "0", "0").AsStrSlice()
		must(t, err)
		if ms, err := strconv.Atoi(members[0][1:4]); err != nil || ms >= 400 {
			t.Errorf("its entry is %q, and says that the lock is left to it for %d ms", members[0], ms)
		}
		must(t, holder.Unlock())
		got := locktest.Get(t, called, 10*time.Second, "it")
		must(t, got.Err)
		must(t, got.Hold.Unlock())
	})
}

// farReader is the read side of a lock.
func farReader(ses *rlock.Session, name string) locktest.Mutex {
	return readSide{rwlock.New(ses, name)}
}

type readSide struct{ *rwlock.RWMutex }

func (r readSide) Lock(ctx context.Context, opts ...rlock.LockOption) (context.Context, *rlock.Hold, error) {
	return r.RLock(ctx, opts...)
}

func hold(m locktest.Mutex, ctx context.Context) (*rlock.Hold, error) {
	_, h, err := m.Lock(ctx)
	return h, err
}

// entryHead is what an entry begins with.
var entryHead = regexp.MustCompile(`^[a-zA-Z][0-9a-z]{7}[0-9]{12}`)

// stands waits until so many entries stand in the line.
func stands(t *testing.T, s *redistest.Server, name string, n int) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "the entries in the line", func() bool {
		got := 0
		members, err := s.Do(t, "ZRANGE", locktest.LineOf(name), "0", "-1").AsStrSlice()
		must(t, err)
		for _, m := range members {
			if entryHead.MatchString(m) {
				got++
			}
		}
		return got == n
	})
}

// So has one that waits for a counter, and one that wants more permits than a release writes down for others.
func TestAFarSessionThatWaitsForManyPermitsGetsItsTurn(t *testing.T) {
	type take func(ses *rlock.Session, name string, ctx context.Context) (release func() error, err error)
	for what, takes := range map[string]take{
		"counter": func(ses *rlock.Session, name string, ctx context.Context) (func() error, error) {
			counter := semaphore.NewCounter(ses, name)
			return func() error { return counter.Release(ctx, 1) }, counter.Acquire(ctx, 1)
		},
		"permits": func(ses *rlock.Session, name string, ctx context.Context) (func() error, error) {
			_, p, err := semaphore.New(ses, name, 70).Acquire(ctx, 70)
			if err != nil {
				return nil, err
			}
			return p.Release, nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				name, cfg, ctx := redistest.Name(t), calledConfig, within(t, time.Minute)
				far, holder, near := farDial(t, s, 200*time.Millisecond, cfg), dial(t, s, cfg), dial(t, s, cfg)
				if what == "counter" {
					must(t, semaphore.NewCounter(holder, name).Release(ctx, 1)) // which makes it
				}
				release, err := takes(holder, name, ctx)
				must(t, err)
				type taken struct {
					by      string
					release func() error
					err     error
				}
				in := make(chan taken, 2)
				for i, by := range []string{"far", "near"} {
					ses := []*rlock.Session{far, near}[i]
					go func() {
						release, err := takes(ses, name, ctx)
						in <- taken{by, release, err}
					}()
					stands(t, s, name, i+1)
					locktest.Stays(t, ctx, 300*time.Millisecond) // nothing is on its way any more
				}
				for _, want := range []string{"far", "near"} {
					must(t, release())
					got := locktest.Get(t, in, 10*time.Second, "the "+want+" session")
					must(t, got.err)
					if release = got.release; got.by != want {
						t.Fatalf("the %s session got in, and it was the turn of the %s one", got.by, want)
					}
				}
				must(t, release())
			})
		})
	}
}
