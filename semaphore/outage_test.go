package semaphore_test

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// cable is a link to a miniredis in a bubble that can be cut.
type cable struct {
	m     *miniredis.Miniredis
	mu    sync.Mutex
	conns []net.Conn
	down  atomic.Bool // dials fail
	until atomic.Int64
	mute  atomic.Pointer[string] // a reply to a command with that text is lost and the cable cut
	start time.Time
}

type cableConn struct {
	net.Conn
	c    *cable
	lost atomic.Bool
}

func (x *cableConn) Write(b []byte) (int, error) {
	if s := x.c.mute.Load(); s != nil && strings.Contains(string(b), *s) {
		x.c.mute.Store(nil)
		x.lost.Store(true)
		x.c.down.Store(true)
		n, err := x.Conn.Write(b)
		go func() { time.Sleep(time.Millisecond); x.c.cut() }()
		return n, err
	}
	return x.Conn.Write(b)
}
func (x *cableConn) Read(b []byte) (int, error) {
	for {
		n, err := x.Conn.Read(b)
		if err == nil && x.lost.Load() {
			continue
		}
		return n, err
	}
}
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.conns {
		x.Close()
	}
	c.conns = nil
}
func (c *cable) dial(t testing.TB, cfg rlock.Config) *rlock.Session {
	ses, err := rlock.Dial(context.Background(), rueidis.ClientOption{
		InitAddress: []string{"bubble"}, ForceSingleClient: true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			if c.down.Load() {
				u := time.Duration(c.until.Load())
				if u > 0 && time.Since(c.start) > u-4*time.Second { // this dial hangs until then
					time.Sleep(u - time.Since(c.start))
					c.down.Store(false)
				} else {
					return nil, &net.OpError{Op: "dial", Err: errors.New("no route")}
				}
			}
			conn, err := c.m.Dial()
			if err != nil {
				return nil, err
			}
			x := &cableConn{Conn: conn, c: c}
			c.mu.Lock()
			c.conns = append(c.conns, x)
			c.mu.Unlock()
			return x, nil
		},
	}, cfg)
	must(t, err)
	return ses
}
func sha(s string) *string {
	sum := sha1.Sum([]byte(s))
	h := hex.EncodeToString(sum[:])
	return &h
}

func bubble(t *testing.T, fn func(c *cable)) {
	synctest.Test(t, func(t *testing.T) {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		defer m.Close()
		fn(&cable{m: m, start: time.Now()})
	})
}

// a reply is lost, the dial that a resend waits for takes until after the record is gone
func TestCounterTakesOnceAroundALongOutage(t *testing.T) {
	bubble(t, func(c *cable) {
		ses := c.dial(t, rlock.Config{})
		defer ses.Close()
		c.m.Set("c", "10")
		c.start = time.Now()
		c.until.Store(int64(61500 * time.Millisecond))
		c.mute.Store(sha(src["take"]))
		err := semaphore.NewCounter(ses, "c").Acquire(context.Background(), 1)
		v, _ := c.m.Get("c")
		t.Logf("err %v after %v, value %s", err, time.Since(c.start), v)
		time.Sleep(5 * time.Second)
		v, _ = c.m.Get("c")
		want := "9"
		if err != nil {
			want = "10"
		}
		if v != want {
			t.Errorf("Acquire(1) of 10 gave %v, and left %s, want %s", err, v, want)
		}
	})
}

// given up in an outage; the undo comes when the record is gone
func TestCounterGivesBackAfterALongOutage(t *testing.T) {
	bubble(t, func(c *cable) {
		ses := c.dial(t, rlock.Config{})
		defer ses.Close()
		c.m.Set("c", "10")
		c.start = time.Now()
		c.mute.Store(sha(src["take"]))
		err := semaphore.NewCounter(ses, "c").Acquire(context.Background(), 1, rlock.Wait(30*time.Second))
		t.Logf("err %v after %v", err, time.Since(c.start))
		time.Sleep(35 * time.Second) // 65 s
		c.down.Store(false)
		time.Sleep(20 * time.Second)
		if v, _ := c.m.Get("c"); v != "10" {
			t.Errorf("left %s, want 10; %v", v, c.m.Keys())
		}
	})
}

// a waiter lives through an outage as long as ctx
func TestCounterWaiterSurvivesALongOutage(t *testing.T) {
	bubble(t, func(c *cable) {
		ses := c.dial(t, rlock.Config{})
		defer ses.Close()
		done := make(chan error, 1)
		go func() { done <- semaphore.NewCounter(ses, "c").Acquire(context.Background(), 1) }()
		time.Sleep(10 * time.Second)
		c.mute.Store(sha(src["take"]))
		time.Sleep(90 * time.Second)
		c.down.Store(false)
		time.Sleep(10 * time.Second)
		select {
		case err := <-done:
			t.Errorf("the waiter has returned: %v", err)
		default:
			c.m.Set("c", "1")
			time.Sleep(10 * time.Second)
			must(t, <-done)
		}
	})
}

// the TTL of the free permits is taken away again
func TestTTLThatIsTakenAwayAgain(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, how := range []string{"PERSIST", "DEL", "EXPIRE"} {
			ses := dial(t, s, rlock.Config{})
			m := semaphore.New(ses, "x", 3)
			ctx := within(t, 20*time.Second)
			_, p, err := m.Acquire(ctx, 1)
			must(t, err)
			must(t, s.Do(t, "PEXPIRE", "x", "500").Error())
			_, p2, err := m.Acquire(ctx, 1)
			must(t, err)
			if how == "EXPIRE" {
				must(t, s.Do(t, how, "x", "100").Error())
			} else {
				must(t, s.Do(t, how, "x").Error())
			}
			_, p3, err := m.Acquire(ctx, 1)
			must(t, err)
			wait := time.NewTimer(600 * time.Millisecond) // until the old end of the zset is over
			<-wait.C
			for _, p := range []*semaphore.Permits{p, p2, p3} {
				_ = p.Release() // those of a counter that was gone for a while may be lost
			}
			if n, err := m.Available(ctx); n != 3 {
				t.Errorf("%s: %d available, %v; %s", how, n, err, locktest.Describe(t, s))
			}
			s.FlushAll(t)
		}
	})
}

// integers that Redis does not take for ones
func TestOddIntegersChangeNothing(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, v := range []string{"007", "-0"} {
			ses := dial(t, s, rlock.Config{})
			ctx := within(t, 20*time.Second)
			must(t, s.Do(t, "SET", "x", v).Error())
			_, _, err := semaphore.New(ses, "x", 3).TryAcquire(ctx, 2)
			t.Log(err)
			if got := locktest.Describe(t, s); got != "x="+v {
				t.Errorf("error %v, but Redis has now %s", err, got)
			}
			s.FlushAll(t)
			must(t, s.Do(t, "SET", "c", v).Error())
			c := semaphore.NewCounter(ses, "c")
			for what, err := range map[string]error{"take": c.TryAcquire(ctx, 1), "add": c.Release(ctx, 1), "drain": second(c.Drain(ctx)), "available": second(c.Available(ctx))} {
				t.Log(what, err)
			}
			s.FlushAll(t)
		}
	})
}

// a call is bounded by the release timeout
func TestCallsAreBoundedByTheReleaseTimeout(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		ses, p := locktest.DialProxy(t, s, rlock.Config{ReleaseTimeout: 300 * time.Millisecond})
		c := semaphore.NewCounter(ses, "c")
		must(t, c.Release(context.Background(), 1))
		p.BlackHole(true)
		began := time.Now()
		err := c.Release(context.Background(), 1)
		t.Logf("%v: %v", time.Since(began), err)
		if d := time.Since(began); d > 300*time.Millisecond+s.Slack() {
			t.Errorf("it took %v", d)
		}
	})
}
