package line_test

import (
	"fmt"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A plain and a Fenced caller of one session wait for one name. Each is let in by another's release and gets what it
// wants, a token or none, whichever of them comes first, and also when the release does not name the key of the tokens:
// then the Fenced one is called, and asks (scenario 47).
func TestAPlainAndAFencedCallerGetWhatTheyWant(t *testing.T) {
	t.Parallel()
	fenced := []rlock.MutexOption{rlock.Fenced()}
	for _, releaser := range [][]rlock.MutexOption{nil, fenced} {
		for _, order := range [][2][]rlock.MutexOption{{nil, fenced}, {fenced, nil}} {
			t.Run(fmt.Sprintf("release fenced %v first fenced %v", releaser != nil, order[0] != nil), func(t *testing.T) {
				redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
					cfg := rlock.Config{PollFloor: time.Hour}
					other, ses, ctx := dial(t, s, cfg), dial(t, s, cfg), within(t, time.Minute)
					last := int64(0)
					for range 3 {
						_, h, err := rlock.New(other, "x", releaser...).Lock(ctx)
						must(t, err)
						if releaser != nil {
							last = h.Token()
						}
						var callers [2]<-chan locktest.Locked
						for i, opts := range order {
							callers[i] = locktest.GoLock(rlock.New(ses, "x", opts...), ctx)
							redistest.Eventually(t, 5*time.Second, "one more to wait", func() bool { return locktest.WaitersOf(ses, "x") == i+1 })
							locktest.AwaitInLine(t, s, "x", ses)
						}
						must(t, h.Unlock())
						for i, opts := range order {
							got := locktest.Get(t, callers[i], 20*time.Second, fmt.Sprintf("Lock of caller %d", i))
							must(t, got.Err)
							switch token := got.Hold.Token(); {
							case opts == nil && token != 0:
								t.Errorf("the plain caller has the token %d", token)
							case opts != nil && token <= last:
								t.Errorf("the fenced caller has the token %d after %d", token, last)
							case opts != nil:
								last = token
							}
							must(t, got.Hold.Unlock())
						}
					}
				})
			})
		}
	}
}
