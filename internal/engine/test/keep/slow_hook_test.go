package keep_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// A kept lock is used far more often than a hook can be told. What waits for that hook stays bounded, and each beginning
// that it hears of has its end.
func TestKeptLocksAreUsedFasterThanTheHook(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const cycles, most = 10_000, 2100 // a thousand events wait at most, and an end for each beginning
		first, goOn, last := make(chan struct{}), make(chan struct{}), make(chan struct{})
		begun, ended := 0, 0 // of the goroutine of the hooks, until the last one was called
		ses, err := rlock.Dial(within(t, time.Minute), s.Option(), rlock.Config{Trace: &rlock.Trace{
			Kept: func(e locktrace.Kept) {
				switch e.What {
				case locktrace.KeptBegins:
					if begun++; begun == 1 {
						close(first)
						<-goOn
					}
				default:
					ended++
				}
			},
			Subscription: func(e locktrace.Subscription) {
				if e.State == locktrace.SubscriptionClosed {
					close(last)
				}
			},
		}})
		must(t, err)
		m, ctx := rlock.New(ses, redistest.Name(t), rlock.Keep(keptFor)), within(t, time.Minute)
		for range cycles {
			_, h, err := m.Lock(ctx)
			must(t, err)
			must(t, h.Unlock())
		}
		<-first
		close(goOn)
		must(t, ses.Close())
		locktest.Get(t, last, 30*time.Second, "the hooks to have been called")
		if begun != ended || begun+ended > most {
			t.Errorf("after %d cycles the hook has heard of %d beginnings and %d ends", cycles, begun, ended)
		}
	})
}
