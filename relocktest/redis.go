package relocktest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/rlock"
)

// patience bounds every call that a helper makes in the test's name. The embedded Redis
// answers within a millisecond, so it only matters on a machine that stands still.
const patience = 30 * time.Second

// Redis is an embedded Redis for one test. Its methods are safe for concurrent use.
type Redis struct {
	mini *miniredis.Miniredis

	gate    sync.RWMutex // held by those who connect, and by Stop: a connection that comes about behind it would start mini again
	stopped bool         // guarded by gate

	mu      sync.Mutex
	waiters map[string]int // callers that wait, by the lock's name
	changed chan struct{}  // closed when that changes; nil if no goroutine looks
}

// Start starts an embedded Redis, which ends with the test. It opens no port: clients reach
// it over connections in memory, so it also works in a testing/synctest bubble, where its
// TTLs follow the bubble's clock.
func Start(tb testing.TB) *Redis {
	tb.Helper()
	r := newRedis()
	tb.Cleanup(r.Stop)
	return r
}

func newRedis() *Redis {
	r := &Redis{mini: miniredis.NewMiniRedis()}
	r.mini.ClockTTL(true)
	return r
}

// Option returns the client options that reach this Redis, for [rlock.Dial] and for clients
// of the application's own.
func (r *Redis) Option() rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{"relocktest"},
		ForceSingleClient: true, // rueidis takes miniredis for a cluster of one node
		DisableCache:      true, // miniredis does not support client-side caching
		DialCtxFn:         r.dial,
	}
}

// errStopped is why nothing connects after Stop.
var errStopped = errors.New("relocktest: the embedded Redis is stopped; Resume starts it again")

func (r *Redis) dial(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	r.gate.RLock()
	defer r.gate.RUnlock()
	if r.stopped {
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errStopped}
	}
	return r.mini.Dial()
}

// Session opens a session with the given settings, and closes it when the test ends. Each
// call gives another session, as if it were another process. The zero Config has good
// defaults; a short Lease (1 s, say) makes tests quick that wait for a lost lock. Session ends
// the test when the settings are wrong.
func (r *Redis) Session(tb testing.TB, cfg rlock.Config) *rlock.Session {
	tb.Helper()
	s, err := r.open(cfg)
	if err != nil {
		tb.Fatalf("relocktest: %v", err)
	}
	tb.Cleanup(func() { _ = s.Close() }) // a test may have closed it, or stopped Redis
	return s
}

// Session opens a session on an embedded Redis of its own: [Start] and [Redis.Session] with
// the defaults, for tests that need one session and nothing else.
func Session(tb testing.TB) *rlock.Session {
	tb.Helper()
	return Start(tb).Session(tb, rlock.Config{})
}

// Locker is what the locks have for operators. [rlock.Mutex], fairlock.Mutex and
// rwlock.RWMutex are Lockers.
type Locker interface {
	ForceUnlock(ctx context.Context) (bool, error)
}

// Lose takes the lock away from its holders, as an operator's ForceUnlock, an eviction or a
// failover does. Their sections' contexts end with the cause [rlock.ErrLost], and Unlock
// returns ErrLost. The session is told by a message, so it happens shortly after the call.
// Lose ends the test if the lock is not held.
func (r *Redis) Lose(tb testing.TB, l Locker) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	held, err := l.ForceUnlock(ctx)
	if err != nil {
		tb.Fatalf("relocktest: lose: %v", err)
	}
	if !held {
		tb.Fatal("relocktest: lose: the lock is not held")
	}
}

// Stop makes Redis unreachable: connections break and new ones are refused. What is stored
// stays, and TTLs go on running.
func (r *Redis) Stop() {
	r.gate.Lock()
	defer r.gate.Unlock()
	r.stopped = true
	r.mini.Close()
}

// Resume ends what Stop began.
func (r *Redis) Resume() {
	r.gate.Lock()
	defer r.gate.Unlock()
	r.stopped = false
}

// Refuse makes Redis answer every command with the given error, such as
// "LOADING Redis is loading the dataset in memory" or "OOM command not allowed". An empty
// text ends it.
func (r *Redis) Refuse(text string) { r.mini.SetError(text) }

// Miniredis returns the embedded server, to look at keys and for whatever else it offers.
func (r *Redis) Miniredis() *miniredis.Miniredis { return r.mini }
