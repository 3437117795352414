package fault_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// An Unlock over the direct connection, which a made-up clock has none of, gives up at the release
// timeout too, however long the client would wait for a silent server.
func TestFaultReleaseTimeoutOfTheDirectConnection(t *testing.T) {
	t.Parallel()
	const timeout = 500 * time.Millisecond
	s := redistest.Mini(t)
	p := faulttest.New(t, s.Addr)
	opt := p.Option(s.Option())
	opt.ConnWriteTimeout = time.Minute
	ses, err := rlock.Dial(context.Background(), opt, rlock.Config{ReleaseTimeout: timeout})
	must(t, err)
	t.Cleanup(func() { _ = ses.Close() })
	_, h, err := rlock.New(ses, "x").Lock(within(t, 30*time.Second))
	must(t, err)
	p.BlackHole(true)
	from := time.Now()
	err = h.Unlock()
	if d := time.Since(from); d < timeout || d > timeout+s.Slack() {
		t.Errorf("Unlock took %v; the release timeout is %v", d, timeout)
	}
	faultNoSentinel(t, "Unlock", err)
	p.BlackHole(false)
	redistest.Eventually(t, 20*time.Second, "the release in the background", func() bool { return locktest.Free(t, s, "x") })
}
