package simulate

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"relock/internal/test/locktest"
	"relock/rlock"
)

// A crowd is so many sessions, each of which takes the same lock, over links that always take the same time.
type crowd struct {
	mini     *miniredis.Miniredis
	hosts    []*host
	mu       sync.Mutex
	commands map[string]int
}

// numbers are of sessions: what one of them costs must be the same for each.
var numbers = []int{4, 16, 64}

func newCrowd(t *testing.T, n int) *crowd {
	c := &crowd{mini: miniredis.NewMiniRedis(), commands: map[string]int{}}
	c.mini.ClockTTL(true)
	t.Cleanup(c.mini.Close)
	w := &world{seed: 1}
	for i := range n {
		h := &host{number: i, world: w, link: newLink(c.mini, w.rng(i))}
		h.link.constant = 200*time.Microsecond + time.Duration(i)*time.Microsecond
		ses, err := rlock.Dial(t.Context(), h.link.option(), rlock.Config{ID: fmt.Sprint("host", i)})
		locktest.Must(t, err)
		h.ses = ses
		c.hosts = append(c.hosts, h)
	}
	c.mini.Server().SetPreHook(func(_ *server.Peer, cmd string, _ ...string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		switch cmd {
		case "PING", "HELLO", "CLIENT":
		case "EVAL", "EVALSHA":
			c.commands["scripts"]++
		default:
			c.commands["others"]++
		}
		return false
	})
	return c
}

// end closes the sessions.
func (c *crowd) end(t *testing.T) {
	for _, h := range c.hosts {
		locktest.Must(t, h.ses.Close())
		h.link.cut()
	}
}

// count returns how many scripts were run, and how many commands else, inside of them and beside.
func (c *crowd) count() (scripts, others int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.commands["scripts"], c.commands["others"]
}

// wanted is what all want, by the kind.
var wanted = map[string]want{
	"plain": {kind: "plain", name: "x"}, "fair": {kind: "fair", name: "x"}, "writers": {kind: "rw", name: "x"},
	"semaphore": {kind: "semaphore", name: "x", n: 1, limit: 3},
}

// eachKind runs fn in a bubble of its own for each kind and number, and has it return a cost, which must not grow.
func eachKind(t *testing.T, most map[string]float64, fn func(t *testing.T, c *crowd, what want) float64) {
	for kind, what := range wanted {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var costs []float64
			for _, n := range numbers {
				synctest.Test(t, func(t *testing.T) {
					c := newCrowd(t, n)
					costs = append(costs, fn(t, c, what))
					c.end(t)
				})
			}
			t.Logf("%.2f for %v sessions", costs, numbers)
			for i, cost := range costs {
				if cost > 1.1*costs[0]+0.05 || cost > most[kind] {
					t.Errorf("%d sessions: %.2f, want no more than for %d, %.2f, and at most %.1f", numbers[i], cost, numbers[0], costs[0], most[kind])
				}
			}
		})
	}
}

// An acquisition costs as many commands, those inside of scripts counted, however many sessions want the lock (R15).
func TestCommandsOfAnAcquisition(t *testing.T) {
	eachKind(t, map[string]float64{"plain": 18.1, "fair": 18.1, "writers": 26.1, "semaphore": 25}, func(t *testing.T, c *crowd, what want) float64 {
		const each = 8
		var done sync.WaitGroup
		var before, scripts, others int
		began := make(chan struct{})
		for _, h := range c.hosts {
			done.Go(func() {
				for i := range each + 2 {
					_, release, err := h.acquire(context.Background(), what, nil)
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
					if h.number == 0 && i == 1 {
						s, o := c.count()
						before = s + o
						close(began)
					}
					if h.number == 0 && i == each {
						scripts, others = c.count()
					}
					if err := release(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		<-began
		done.Wait()
		return float64(scripts+others-before) / float64((each-1)*len(c.hosts))
	})
}

// A session that waits sends a script every two seconds, of a fair lock every second, however many wait (R15).
func TestCommandsOfAWaiter(t *testing.T) {
	eachKind(t, map[string]float64{"plain": 0.65, "fair": 1.1, "writers": 0.65, "semaphore": 0.65}, func(t *testing.T, c *crowd, what want) float64 {
		var held []func() error
		for range max(1, what.limit) {
			_, release, err := c.hosts[0].acquire(context.Background(), what, nil)
			locktest.Must(t, err)
			held = append(held, release)
		}
		var done sync.WaitGroup
		ctx, cancel := context.WithCancel(context.Background())
		for _, h := range c.hosts[1:] {
			done.Go(func() { _, _, _ = h.acquire(ctx, what, nil) })
		}
		time.Sleep(5 * time.Second)
		before, _ := c.count()
		time.Sleep(20 * time.Second)
		scripts, _ := c.count()
		cancel()
		done.Wait()
		for _, release := range held {
			locktest.Must(t, release())
		}
		return float64(scripts-before) / float64(len(c.hosts)-1) / 20
	})
}
