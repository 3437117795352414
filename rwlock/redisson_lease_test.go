package rwlock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// Redisson's renewal of a reader sets the lease of the lock to its watchdog timeout, whatever
// others hold.
func javaWatchdog(s *redistest.Server) time.Duration { return s.Slowed(3 * time.Second) }

func javaRenews(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	must(t, s.Do(t, "PEXPIRE", name, strconv.FormatInt(javaWatchdog(s).Milliseconds(), 10)).Error())
}

// readLong reads in each of the ways in which a read hold can be longer than Redisson's
// watchdog.
func readLong(t *testing.T, ctx context.Context, ses *rlock.Session) (sections map[string]context.Context) {
	t.Helper()
	sections = map[string]context.Context{}
	sections["renewed"], _ = hold(t, ctx, rwlock.New(ses, "renewed").RLock)
	sections["fixed"], _ = hold(t, ctx, rwlock.New(ses, "fixed").RLock, rlock.Lease(time.Hour))

	// Readers that share a hold, one of them with a fixed one of its own.
	shared := rwlock.New(ses, "shared")
	first, _ := hold(t, ctx, shared.RLock)
	hold(t, ctx, shared.RLock)
	sections["shared"], _ = hold(t, first, shared.RLock, rlock.Lease(time.Hour))

	// A writer that goes on as a reader.
	down := rwlock.New(ses, "downgraded")
	section, w := hold(t, ctx, down.Lock)
	sections["downgraded"], _ = hold(t, section, down.RLock)
	must(t, w.Unlock())
	return sections
}

func TestReadersOutliveRedissonsRenewal(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 80*time.Second)
		ses := locktest.Dial(t, s, rlock.Config{Lease: time.Minute, RedissonWatchdog: javaWatchdog(s)})
		others := locktest.Dial(t, s, rlock.Config{})
		sections := readLong(t, ctx, ses)
		for name := range sections {
			javaRenews(t, s, name)
		}
		time.Sleep(3 * javaWatchdog(s) / 2) // what is to be seen is that nothing happens
		for name, section := range sections {
			must(t, context.Cause(section))
			refused(t, ctx, rwlock.New(others, name).TryLock, name)
		}
	})
}

func TestReadersEndBeforeRedissonsLeaseDoes(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := within(t, 80*time.Second)
		stalls := locktest.WatchStalls(t)
		ses, proxy := locktest.DialProxy(t, s, rlock.Config{Lease: time.Minute, RedissonWatchdog: javaWatchdog(s)})
		others := locktest.Dial(t, s, rlock.Config{PollFloor: 20 * time.Millisecond})
		sections := readLong(t, ctx, ses)
		proxy.BlackHole(true)
		for name := range sections {
			javaRenews(t, s, name)
		}
		for name, section := range sections {
			_, h := hold(t, ctx, rwlock.New(others, name).Lock)
			if cause := context.Cause(section); cause != nil || stalls.Longest() < javaWatchdog(s)/100 {
				is(t, name+": a writer is in, and the section's cause", cause, rlock.ErrLost)
			}
			must(t, h.Unlock())
		}
	})
}
