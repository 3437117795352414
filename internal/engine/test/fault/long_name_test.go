package fault_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A name may have any length, and so may an owner's. The log shows the beginning of each, as errors do.
func TestTheLogCutsLongNames(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ctx := locktest.Within(t, time.Minute)
		var log locktest.Journal
		ses, p := locktest.DialProxy(t, s, rlock.Config{Logger: log.Logger(), ReleaseTimeout: time.Second})
		const most = 1000 // bytes of a line
		shown := func(text string) {
			t.Helper()
			redistest.Eventually(t, 20*time.Second, text+" in the log", func() bool { return log.Count(text) > 0 })
			if line := log.Last(text); len(line) > most || !strings.Contains(line, "nnn... (10000 bytes)") {
				t.Errorf("%q has %d bytes: %.1000s", text, len(line), line)
			}
		}
		name := strings.Repeat("n", 10_000)
		m := rlock.New(ses, name)
		_, h, err := m.Lock(rlock.WithOwner(ctx, strings.Repeat("o", 10_000)))
		must(t, err)
		must(t, s.Do(t, "DEL", name).Error())
		locktest.Is(t, "Unlock", h.Unlock(), rlock.ErrLost)
		shown("lock lost")
		_, h, err = m.Lock(ctx)
		must(t, err)
		p.Refuse(true)
		p.Cut()
		h.UnlockAsync()
		shown("an UnlockAsync has failed")
		brief, cancel := context.WithCancel(ctx)
		next := locktest.GoLock(rlock.New(ses, strings.Repeat("n", 9_999)+"x"), brief)
		shown("Redis cannot serve")
		cancel()
		<-next
	})
}

// So does the log of a subscription that Redis refuses: its channel has the name in it.
func TestTheLogCutsTheChannelsOfLongNames(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	ctx := locktest.Within(t, time.Minute)
	opt, allow := faultUser(t, s, "deaf")
	allow("-subscribe")
	var log locktest.Journal
	ses, err := rlock.Dial(ctx, opt, rlock.Config{Logger: log.Logger()})
	must(t, err)
	defer ses.Close()
	name := strings.Repeat("n", 10_000)
	_, h, err := rlock.New(locktest.Dial(t, s, rlock.Config{}), name).Lock(ctx)
	must(t, err)
	brief, cancel := context.WithCancel(ctx)
	next := locktest.GoLock(rlock.New(ses, name), brief)
	redistest.Eventually(t, 20*time.Second, "the refusal in the log", func() bool { return log.Count("nnn") > 0 })
	if line := log.Last("nnn"); len(line) > 1000 {
		t.Errorf("it has %d bytes: %.1000s", len(line), line)
	}
	cancel()
	<-next
	must(t, h.Unlock())
}
