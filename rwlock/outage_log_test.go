package rwlock_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// The renewals of both sides fail, and one side is unlocked before Redis is there again. That no
// renewal fails any more is logged when the other has been renewed.
func TestASideThatIsUnlockedCountsAsRenewed(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		var log safeLog
		ctx := within(t, 2*time.Minute)
		ses, p := locktest.DialProxy(t, s, rlock.Config{Lease: 9 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		m := rwlock.New(ses, "x")
		section, w := hold(t, ctx, m.Lock)
		_, r := hold(t, section, m.RLock)
		p.Refuse(true)
		redistest.Eventually(t, time.Minute, "renewals fail", func() bool { return log.has("renewals fail") })
		_ = w.Unlock() // whether that is confirmed is not the question
		p.Refuse(false)
		redistest.Eventually(t, time.Minute, "the end is logged", func() bool { return log.has("no renewal fails any more") })
		must(t, r.Unlock())
	})
}

// safeLog is what was logged.
type safeLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *safeLog) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}
