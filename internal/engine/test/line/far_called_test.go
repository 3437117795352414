package line_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// A session that is called, and not given the lock, has two round trips to come, however far away it is: it would else
// be too late at each release, beside others who are near.
func TestAFarSessionThatIsCalledGetsItsTurn(t *testing.T) {
	plain := func(ses *rlock.Session, name string) locktest.Mutex { return rlock.New(ses, name) }
	writer := func(ses *rlock.Session, name string) locktest.Mutex { return rwlock.New(ses, name) }
	for what, c := range map[string]struct {
		near, far func(ses *rlock.Session, name string) locktest.Mutex
		owner     string
		opts      []rlock.LockOption
	}{
		"plain, named":               {plain, plain, "me", nil},
		"plain, a lease of its own":  {plain, plain, "", []rlock.LockOption{rlock.Lease(time.Minute)}},
		"writer, named":              {writer, writer, "me", nil},
		"writer, a lease of its own": {writer, writer, "", []rlock.LockOption{rlock.Lease(time.Minute)}},
		"reader":                     {writer, farReader, "", nil},
		"reader, named":              {writer, farReader, "me", nil},
	} {
		t.Run(what, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
				name, cfg := redistest.Name(t), calledConfig
				ctx := within(t, time.Minute)
				far := farDial(t, s, 200*time.Millisecond, cfg)
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
				first := locktest.Get(t, called, 10*time.Second, "the far session")
				must(t, first.Err)
				select {
				case <-behind:
					t.Fatal("the one behind was let in before it")
				default:
				}
				must(t, first.Hold.Unlock())
				second := locktest.Get(t, behind, 10*time.Second, "the one behind")
				must(t, second.Err)
				must(t, second.Hold.Unlock())
			})
		})
	}
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
var entryHead = regexp.MustCompile(`^[a-zA-Z][0-9]{19}`)

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
