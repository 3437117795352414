package locktest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/rlock"
)

// Leased runs fn in a bubble, with a session whose lease is 20 s, of which 19 s are trusted.
func Leased(t *testing.T, fn func(t *testing.T, m *miniredis.Miniredis, ses *rlock.Session, p *Passes)) {
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		p := new(Passes)
		ses := DialBubble(t, m, rlock.Config{Lease: 20 * time.Second, Trace: p.Trace()})
		defer ses.Close()
		fn(t, m, ses, p)
	})
}

// TakeTurns locks, lets one more wait, and returns the first hold and how to get the second.
func TakeTurns(t *testing.T, ses *rlock.Session) (first *rlock.Hold, next <-chan Locked) {
	t.Helper()
	_, h, err := rlock.New(ses, "x").Lock(context.Background())
	Must(t, err)
	Unhurried(ses, "x")
	next = GoLock(rlock.New(ses, "x"), context.Background())
	synctest.Wait()
	return h, next
}
