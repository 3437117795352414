package redisson

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

const (
	stressThreads  = 8 // of each side; Go's are in two sessions
	stressSessions = 2
	stressPermits  = 3

	// starved is who waits for longer.
	starved = 10 * time.Second
)

// TestStress has threads of Java and of Go, eight each, at one name, 10 000 times in all
// (or RELOCK_STRESS). What they do inside goes wrong if the lock does not exclude; how
// they take turns is reported.
func TestStress(t *testing.T) {
	e := single(t, dialect{})
	p := startPeer(t, e)
	for _, c := range []struct {
		name, kind string
		cfg        rlock.Config
		least      int64 // turns of each thread, in thousandths of an even share
	}{
		// Every turn by way of Redis, as it is between Java threads too.
		{"lock", "lock", rlock.Config{HandOverLimit: -1}, 20},
		// A session passes the lock on in memory, many turns for each that another process
		// has: so what counts is how long that waits.
		{"handover", "lock", rlock.Config{}, 1},
		{"rw", "rw", rlock.Config{}, 20},
		{"semaphore", "semaphore", rlock.Config{}, 20},
		{"permits", "permits", rlock.Config{}, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.skipFlaw(t, p, "stress/"+c.name)
			st := newStress(t, e, c.kind, p, c.cfg)
			st.run(t)
			st.judge(t, max(1, st.total/(2*stressThreads)*c.least/1000))
		})
	}
}

// A stress is one run. Its keys are those of peer/, Stress.java: a counter that is read and
// written in two steps, a flag of who is inside, a number of those who are, and tickets.
type stress struct {
	kind, name string
	total      int64
	java       *peer
	client     rueidis.Client // for what happens inside
	sessions   []*side

	took time.Duration

	mu    sync.Mutex
	turns []turn
}

func newStress(t *testing.T, e *env, kind string, p *peer, cfg rlock.Config) *stress {
	st := &stress{kind: kind, name: redistest.Name(t), total: 10_000, java: p, client: e.admin}
	if v := os.Getenv("RELOCK_STRESS"); v != "" {
		n, err := strconv.ParseInt(v, 10, 64)
		locktest.Must(t, err)
		st.total = n
	}
	for range stressSessions {
		st.sessions = append(st.sessions, e.session(t, cfg))
	}
	b := e.admin.B()
	locktest.Must(t, e.admin.Do(t.Context(), b.Mset().KeyValue().
		KeyValue(st.name+":count", "0").KeyValue(st.name+":flag", "").
		KeyValue(st.name+":inside", "0").KeyValue(st.name+":tickets", "0").Build()).Error())
	if kind == "semaphore" {
		_, err := semaphore.NewCounter(st.sessions[0].Session, st.name).TrySet(t.Context(), stressPermits)
		locktest.Must(t, err)
	}
	if kind == "permits" {
		locktest.Must(t, semaphore.New(st.sessions[0].Session, st.name, stressPermits).SetLimit(t.Context(), stressPermits))
	}
	return st
}

func (st *stress) run(t *testing.T) {
	ctx := locktest.Within(t, 5*time.Minute)
	began := time.Now()
	java := st.java.thread(t).start(st.kind, st.name, "stress",
		strconv.Itoa(stressThreads), strconv.FormatInt(st.total, 10), strconv.Itoa(stressPermits))
	var wg sync.WaitGroup
	for i := range stressThreads {
		wg.Go(func() {
			if err := st.work(ctx, "g"+strconv.Itoa(i), st.sessions[i%stressSessions].Session); err != nil {
				t.Errorf("g%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	a := locktest.Get(t, java, 5*time.Minute, "the Java threads")
	locktest.Must(t, a.err)
	theirs, err := parseTurns(a.value)
	locktest.Must(t, err)
	st.turns = append(st.turns, theirs...)
	st.took = time.Since(began)
}

// work is one goroutine.
func (st *stress) work(ctx context.Context, me string, s *rlock.Session) error {
	lock, rw := rlock.New(s, st.name), rwlock.New(s, st.name)
	counter, permits := semaphore.NewCounter(s, st.name), semaphore.New(s, st.name, stressPermits)
	for {
		ticket, err := st.client.Do(ctx, st.client.B().Incr().Key(st.name+":tickets").Build()).AsInt64()
		if err != nil || ticket > st.total {
			return err
		}
		n := 1 + int(ticket%2)
		switch {
		case st.kind == "lock":
			err = st.locked(ctx, turn{who: me, mode: "x"}, lock.Lock, st.alone)
		case st.kind == "rw" && ticket%4 == 0:
			err = st.locked(ctx, turn{who: me, mode: "x"}, rw.Lock, st.alone)
		case st.kind == "rw":
			err = st.locked(ctx, turn{who: me, mode: "r"}, rw.RLock, st.shared)
		case st.kind == "semaphore":
			err = st.section(ctx, turn{who: me, mode: "s"}, func() (func() error, error) {
				return func() error { return counter.Release(ctx, n) }, counter.Acquire(ctx, n)
			}, st.atMost(n))
		case st.kind == "permits":
			err = st.section(ctx, turn{who: me, mode: "s"}, func() (func() error, error) {
				_, p, err := permits.Acquire(ctx, n)
				return p.Release, err
			}, st.atMost(n))
		}
		if err != nil {
			return err
		}
	}
}

func (st *stress) locked(ctx context.Context, tn turn, lock locking, inside func(context.Context, string) error) error {
	return st.section(ctx, tn, func() (func() error, error) {
		_, h, err := lock(ctx)
		return h.Unlock, err
	}, inside)
}

// section is one acquisition, with what happens inside.
func (st *stress) section(ctx context.Context, tn turn, enter func() (leave func() error, err error), inside func(context.Context, string) error) error {
	tn.asked = time.Now()
	leave, err := enter()
	if err != nil {
		return err
	}
	tn.entered = time.Now()
	err = inside(ctx, tn.who)
	tn.left = time.Now()
	err = errors.Join(err, leave())
	st.mu.Lock()
	defer st.mu.Unlock()
	st.turns = append(st.turns, tn)
	return err
}

// alone counts in two steps, which goes wrong unless nobody else is inside.
func (st *stress) alone(ctx context.Context, me string) error {
	c := st.client
	before, err := st.look(ctx)
	if err != nil {
		return err
	}
	inside, err := c.Do(ctx, c.B().Get().Key(st.name+":inside").Build()).AsInt64()
	if err != nil {
		return err
	}
	if before[1] != "" || inside != 0 {
		return fmt.Errorf("violation: %s is inside with %q and %d readers", me, before[1], inside)
	}
	count, err := strconv.Atoi(before[0])
	if err != nil {
		return err
	}
	if err := c.Do(ctx, c.B().Mset().KeyValue().
		KeyValue(st.name+":flag", me).KeyValue(st.name+":count", strconv.Itoa(count+1)).Build()).Error(); err != nil {
		return err
	}
	now, err := c.Do(ctx, c.B().Getset().Key(st.name+":flag").Value("").Build()).ToString()
	if err == nil && now != me {
		err = fmt.Errorf("violation: %s is inside with %q", me, now)
	}
	return err
}

// shared looks twice: as long as a reader is inside nobody counts.
func (st *stress) shared(ctx context.Context, me string) error {
	if _, err := st.enter(ctx, 1); err != nil {
		return err
	}
	before, err1 := st.look(ctx)
	after, err2 := st.look(ctx)
	_, err3 := st.enter(ctx, -1)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	if before[1] != "" || before != after {
		return fmt.Errorf("violation: the reader %s is inside with %q, then %q", me, before, after)
	}
	return nil
}

// atMost checks the weight of all who are inside.
func (st *stress) atMost(n int) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		now, err := st.enter(ctx, n)
		if err != nil {
			return err
		}
		if now > stressPermits {
			err = fmt.Errorf("violation: %d are inside, more than %d", now, stressPermits)
		}
		_, err2 := st.enter(ctx, -n)
		return errors.Join(err, err2)
	}
}

// look returns the counter and the flag.
func (st *stress) look(ctx context.Context) (both [2]string, err error) {
	list, err := st.client.Do(ctx, st.client.B().Mget().Key(st.name+":count", st.name+":flag").Build()).AsStrSlice()
	copy(both[:], list)
	return both, err
}

func (st *stress) enter(ctx context.Context, n int) (int64, error) {
	return st.client.Do(ctx, st.client.B().Incrby().Key(st.name+":inside").Increment(int64(n)).Build()).AsInt64()
}

// parseTurns reads what Java reports.
func parseTurns(text string) (turns []turn, err error) {
	for part := range strings.SplitSeq(strings.TrimSuffix(text, ";"), ";") {
		f := strings.Fields(part)
		if len(f) != 5 {
			return nil, fmt.Errorf("Java reports %q", part)
		}
		turns = append(turns, turn{f[0], f[1], nanos(f[2]), nanos(f[3]), nanos(f[4])})
	}
	return turns, nil
}
