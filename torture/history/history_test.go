package history

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
	"relock/torture/oracle"
	"relock/torture/proxy"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// recorder collects the operations of a history.
type recorder struct {
	mu  sync.Mutex
	ops []porcupine.Operation
}

// add adds an operation that began at call. It ends now, or is open if its outcome is unknown.
func (r *recorder) add(client int, call time.Duration, in, out interface{}, open bool) {
	end := int64(oracle.Now())
	if open {
		end = int64(Forever)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: end})
}

// scene is one server, and sessions that reach it through proxies.
type scene struct {
	server   *redistest.Server
	sessions []*rlock.Session
	proxies  []*proxy.Proxy
}

func newScene(t *testing.T, n int) *scene {
	t.Helper()
	s := &scene{server: redistest.Real(t)}
	for range n {
		p, err := proxy.Listen()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		opt := s.server.Option()
		opt.DialCtxFn = proxy.Dialer(p.Addr())
		session, err := rlock.Dial(t.Context(), opt, rlock.Config{ReleaseTimeout: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
		s.sessions, s.proxies = append(s.sessions, session), append(s.proxies, p)
	}
	return s
}

// disturb makes the network and the server fail until stop is closed.
func (s *scene) disturb(tb testing.TB, rnd *rand.Rand, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			for _, p := range s.proxies {
				p.Set(proxy.Rule{})
			}
			return
		case <-time.After(time.Duration(rnd.IntN(30)) * time.Millisecond):
		}
		p := s.proxies[rnd.IntN(len(s.proxies))]
		switch rnd.IntN(5) {
		case 0:
			p.Reset()
		case 1:
			p.Set(proxy.Rule{Down: time.Duration(rnd.IntN(20)) * time.Millisecond})
		case 2:
			p.Set(proxy.Rule{CutDown: true})
			time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
			p.Set(proxy.Rule{})
		case 3:
			p.Set(proxy.Rule{Up: time.Duration(rnd.IntN(40)) * time.Millisecond})
			time.Sleep(5 * time.Millisecond)
			p.Set(proxy.Rule{})
			p.Forsake()
		case 4:
			_ = s.server.Do(tb, "CLIENT", "KILL", "TYPE", "normal").Error() // ends its own connection too
		}
	}
}

// play runs clients, three a session, amid faults.
func (s *scene) play(t *testing.T, rnd *rand.Rand, client func(id int, session *rlock.Session, rnd *rand.Rand)) {
	t.Helper()
	stop := make(chan struct{})
	var nemesis, clients sync.WaitGroup
	seed := rnd.Uint64()
	nemesis.Go(func() { s.disturb(t, rand.New(rand.NewPCG(seed, 0)), stop) })
	for i, session := range s.sessions {
		for j := range 2 {
			id := 1 + i*2 + j
			own := rand.New(rand.NewPCG(seed, uint64(id)))
			clients.Go(func() { client(id, session, own) })
		}
	}
	clients.Wait()
	close(stop)
	nemesis.Wait()
}

// histories is how many are checked, and from which seed on.
func histories(t *testing.T) (seed uint64, n int) {
	t.Helper()
	n = 12
	if testing.Short() {
		n = 3
	}
	if text := os.Getenv("RELOCK_TORTURE_HISTORIES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("RELOCK_TORTURE_HISTORIES: %v", err)
		}
	}
	return uint64(time.Now().UnixNano()) % 1_000_000_000, n
}

// judge has porcupine check a history, and fails the test if no order explains it.
func judge(t *testing.T, seed uint64, m porcupine.Model, r *recorder) {
	t.Helper()
	switch Explains(m, r.ops) {
	case porcupine.Illegal:
		t.Errorf("seed %d: no order explains these %d operations:", seed, len(r.ops))
		for _, op := range r.ops {
			t.Logf("client %d [%d, %d]: %+v -> %+v", op.ClientId, op.Call/1000, op.Return/1000, op.Input, op.Output)
		}
	case porcupine.Unknown:
		t.Logf("seed %d: %d operations: no answer in time", seed, len(r.ops))
	}
}

func TestCounterHistoriesAreLinearizable(t *testing.T) {
	seed, n := histories(t)
	ops := 0
	s := newScene(t, 2)
	for i := range n {
		rnd := rand.New(rand.NewPCG(seed+uint64(i), 0))
		name := redistest.Name(t)
		if made, err := semaphore.NewCounter(s.sessions[0], name).TrySet(t.Context(), 3); err != nil || !made {
			t.Fatalf("TrySet: %v, %v", made, err)
		}
		r := new(recorder)
		s.play(t, rnd, func(id int, session *rlock.Session, rnd *rand.Rand) {
			for range 8 {
				countOnce(r, id, semaphore.NewCounter(session, name), rnd)
				time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
			}
		})
		ops += len(r.ops)
		judge(t, seed+uint64(i), counterModelOf(3), r)
	}
	t.Logf("%d histories of %d operations, from seed %d on", n, ops, seed)
}

func counterModelOf(first int64) porcupine.Model {
	m := counterModel(first)
	return m.ToModel()
}

// countOnce makes one call of a counter.
func countOnce(r *recorder, id int, c *semaphore.Counter, rnd *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n := int64(1 + rnd.IntN(2))
	call := oracle.Now()
	switch rnd.IntN(6) {
	case 0, 1:
		err := c.Add(ctx, int(n))
		r.add(id, call, counterOp{what: "add", n: n}, counterReply{unknown: err != nil}, err != nil)
	case 2:
		v, err := c.Drain(ctx)
		r.add(id, call, counterOp{what: "drain"}, counterReply{value: int64(v), unknown: err != nil}, err != nil)
	case 3:
		if v, err := c.Available(ctx); err == nil {
			r.add(id, call, counterOp{what: "read"}, counterReply{value: int64(v)}, false)
		}
	default:
		err := c.TryAcquire(ctx, int(n))
		switch {
		case err == nil:
			r.add(id, call, counterOp{what: "take", n: n}, counterReply{}, false)
		default:
			r.phantom(id, call, n)
		}
	}
}

// phantom adds an attempt that gave nothing, and may have taken permits for a while.
func (r *recorder) phantom(id int, call time.Duration, n int64) {
	r.mu.Lock()
	i := uint(len(r.ops) % 64)
	r.mu.Unlock()
	r.add(id, call, counterOp{what: "phantom", n: n, i: i}, counterReply{}, true)
	r.add(id, call, counterOp{what: "undo", n: n, i: i}, counterReply{}, true)
}

func TestMutexHistoriesAreLinearizable(t *testing.T) {
	seed, n := histories(t)
	ops := 0
	s := newScene(t, 2)
	for i := range n {
		rnd := rand.New(rand.NewPCG(seed+uint64(i), 0))
		name := redistest.Name(t)
		r := new(recorder)
		s.play(t, rnd, func(id int, session *rlock.Session, rnd *rand.Rand) {
			for range 12 {
				lockOnce(t, r, id, rlock.New(session, name, rlock.Fenced()), rnd)
				time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
			}
		})
		ops += len(r.ops)
		judge(t, seed+uint64(i), Lock(0, Held{}), r)
	}
	t.Logf("%d histories of %d operations, from seed %d on", n, ops, seed)
}

// lockOnce locks and unlocks once.
func lockOnce(t *testing.T, r *recorder, id int, m *rlock.Mutex, rnd *rand.Rand) {
	call := oracle.Now()
	_, h, err := m.Lock(context.Background(), rlock.Wait(time.Duration(rnd.IntN(300))*time.Millisecond))
	if err != nil {
		return // what it may have taken is taken back
	}
	section := uint64(h.Token()) // no other has it
	r.add(id, call, Op{Section: section, Token: h.Token()}, nil, false)
	if rnd.IntN(3) == 0 {
		time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
	}
	call = oracle.Now()
	err = h.Unlock()
	if errors.Is(err, rlock.ErrLost) || errors.Is(err, rlock.ErrNotHeld) {
		t.Errorf("a lock of 30 s was lost within a second: %v", err)
	}
	r.add(id, call, Op{Section: section, Gives: true}, nil, err != nil)
}
