// Quorum shows one lock on five Redises: two services count under it while the Redises go down,
// one after the other. With two of them down the lock works as before. The third one takes the
// majority: the section that is open ends with ErrLost, and a TryLock says ErrUnavailable. When
// one of them is back, so is the lock.
//
// The counter is a plain variable: nothing but the lock protects it. The Redises are embedded ones
// (miniredis).
//
// The exit code is 0 if all went as promised, and 1 if not.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/quorum"
	"relock/rlock"
)

const (
	redises  = 5
	services = 2
	rounds   = 10 // of each service in each act
	lease    = time.Second
	patience = time.Minute
)

func main() {
	if err := run(context.Background(), os.Stdout, embedded); err != nil {
		fmt.Fprintln(os.Stderr, "\nquorum:", err)
		os.Exit(1)
	}
}

// A server is one of the Redises.
type server interface {
	Option() rueidis.ClientOption // for its clients
	Close()
	Restart() error
}

// A stage is the Redises and the services that use them.
type stage struct {
	out     io.Writer
	servers [redises]server
	locks   [services]*quorum.Mutex
	counter int // guarded by the lock
}

// run shows one act after the other, on Redises that start makes.
func run(ctx context.Context, out io.Writer, start func() (server, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	st := &stage{out: out}
	end, err := st.open(ctx, start)
	defer end()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "relock quorum\n\n  A new deployment grants its first lock after one lease, %v.\n", lease)
	if err := st.count(ctx, "five of five Redises"); err != nil {
		return err
	}
	st.servers[0].Close()
	st.servers[1].Close()
	if err := st.count(ctx, "three of five"); err != nil {
		return err
	}
	if err := st.lose(ctx); err != nil {
		return err
	}
	if err := st.servers[0].Restart(); err != nil {
		return err
	}
	return st.count(ctx, "one is back, three of five")
}

// open starts the Redises and the sessions of the services. end must be called in any case.
func (st *stage) open(ctx context.Context, start func() (server, error)) (end func(), err error) {
	var ends []func()
	end = func() {
		for _, fn := range ends {
			fn()
		}
	}
	for i := range st.servers {
		if st.servers[i], err = start(); err != nil {
			return end, err
		}
		ends = append(ends, st.servers[i].Close)
	}
	for i := range st.locks {
		var sessions []*rlock.Session
		for _, server := range st.servers {
			s, err := rlock.Dial(ctx, server.Option(), rlock.Config{Lease: lease, ReleaseTimeout: lease,
				Logger: slog.New(slog.DiscardHandler)}) // it would warn of what is shown here
			if err != nil {
				return end, err
			}
			ends = append([]func(){func() { _ = s.Close() }}, ends...) // votes on a dead Redis cannot be released
			sessions = append(sessions, s)
		}
		st.locks[i] = quorum.New(sessions, "counter")
	}
	return end, nil
}

// A mini is an embedded Redis.
type mini struct{ *miniredis.Miniredis }

func embedded() (server, error) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true) // leases end by the wall clock, as they do in Redis
	if err := m.Start(); err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	return mini{m}, nil
}

func (m mini) Option() rueidis.ClientOption {
	// miniredis would be taken for a Cluster of one node.
	return rueidis.ClientOption{InitAddress: []string{m.Addr()}, ForceSingleClient: true, DisableCache: true}
}

// count has all services count.
func (st *stage) count(ctx context.Context, act string) error {
	before, began := st.counter, time.Now()
	var errs [services]error
	var all sync.WaitGroup
	for i, lock := range st.locks {
		all.Go(func() {
			for range rounds {
				err := lock.Do(ctx, func(context.Context) error {
					st.counter++
					return nil
				})
				// ErrLost says that the majority was lost at the end; the next round shows whether it
				// is there again.
				if err != nil && !errors.Is(err, rlock.ErrLost) {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	fmt.Fprintf(st.out, "  %-28s counted to %2d in %v\n", act+":", st.counter, time.Since(began).Round(time.Millisecond))
	return check(st.counter-before, services*rounds)
}

// check returns whether two services were inside together.
func check(got, want int) error {
	if got != want {
		return fmt.Errorf("%d rounds have counted to %d: two owners were inside at a time", want, got)
	}
	return nil
}

// lose stops a third Redis while the lock is held.
func (st *stage) lose(ctx context.Context) error {
	section, hold, err := st.locks[0].Lock(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	st.servers[2].Close()
	<-section.Done()
	cause := context.Cause(section)
	fmt.Fprintf(st.out, "  %-28s the section ended after %v: %v\n", "two of five:", time.Since(began).Round(time.Millisecond), cause)
	if err := hold.Unlock(); !errors.Is(cause, rlock.ErrLost) || err == nil {
		return fmt.Errorf("the section ended with %w, and Unlock with %v", cause, err)
	}
	_, _, err = st.locks[1].TryLock(ctx)
	fmt.Fprintf(st.out, "  %-28s a TryLock says ErrUnavailable: %v\n", "", errors.Is(err, rlock.ErrUnavailable))
	if !errors.Is(err, rlock.ErrUnavailable) {
		return fmt.Errorf("without a majority TryLock returned %w", err)
	}
	return nil
}
