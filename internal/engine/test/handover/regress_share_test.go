package handover_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// farClient is a client with a long way to the server.
type farClient struct {
	rueidis.Client
	oneWay time.Duration
}

func (c *farClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	time.Sleep(c.oneWay)
	r := c.Client.Do(ctx, cmd)
	time.Sleep(c.oneWay)
	return r
}

// dialFar makes a session in a bubble, whose commands take twice as long as oneWay.
func dialFar(t *testing.T, m *miniredis.Miniredis, oneWay time.Duration) (ses *rlock.Session, end func()) {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"bubble"}, ForceSingleClient: true,
		AlwaysPipelining: true, PipelineMultiplex: -1, DisableCache: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return m.Dial() },
	})
	must(t, err)
	ses, err = rlock.NewSession(context.Background(), &farClient{client, oneWay}, rlock.Config{})
	must(t, err)
	return ses, func() {
		ses.Close()
		client.Close()
	}
}

// A session whose goroutines hand the lock over without end leaves it to others for as long
// as they need, also if they are further away than it is itself, and two that are quicker
// do not pass it to and fro between them. (On a made-up clock, in which commands take no time
// but that of the way, and nobody is busy.)
func TestASessionFurtherAwayGetsItsTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		near   int // sessions, with six goroutines in all
		oneWay time.Duration
		least  int
	}{{1, 0, 50}, {1, 2 * time.Millisecond, 10}, {1, 5 * time.Millisecond, 8}, {2, 200 * time.Microsecond, 10}, {3, 200 * time.Microsecond, 10}} {
		oneWay, least := c.oneWay, c.least
		t.Run(fmt.Sprint(c.near, " near, ", oneWay), func(t *testing.T) {
			if testing.Short() && oneWay < 2*time.Millisecond {
				t.Skip("SKIPPED with -short: keeps a core busy")
			}
			synctest.Test(t, func(t *testing.T) { sharesWithAFarSession(t, c.near, oneWay, least) })
		})
	}
}

// sharesWithAFarSession counts the turns of six goroutines of sessions near by, and of one of a session
// further away.
func sharesWithAFarSession(t *testing.T, sessions int, oneWay time.Duration, least int) {
	const (
		during = time.Second
		inside = 200 * time.Microsecond
	)
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	defer m.Close()
	var near []*rlock.Session
	for range sessions {
		near = append(near, locktest.DialBubble(t, m, rlock.Config{}))
		defer near[len(near)-1].Close()
	}
	far, end := dialFar(t, m, oneWay)
	defer end()

	var mu sync.Mutex
	turns := map[bool]int{} // far or not
	var wg sync.WaitGroup
	over := time.Now().Add(during)
	all := []*rlock.Session{far}
	for i := range 6 {
		all = append(all, near[i%len(near)])
	}
	for _, ses := range all {
		wg.Go(func() {
			for time.Now().Before(over) {
				err := rlock.New(ses, "x").Do(context.Background(), func(context.Context) error {
					mu.Lock()
					turns[ses == far]++
					mu.Unlock()
					time.Sleep(inside)
					return nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d turns near by, %d further away", turns[false], turns[true])
	if turns[true] < least {
		t.Errorf("the session further away got %d turns, want at least %d", turns[true], least)
	}
	if turns[false] < 1000 { // of 5000 if it were alone
		t.Errorf("the session near by got %d turns", turns[false])
	}
}
