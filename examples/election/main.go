// Election runs three processes that stand for election, and shows who leads when:
//
//   - The first candidate leads, and publishes what it does.
//   - It is killed. The second one leads when the lease of the first has ended.
//   - The second one resigns. The third one leads at once.
//
// The program starts itself three times more, as the candidates. Redis is an embedded one
// (miniredis); REDIS_ADDR=host:port takes your own, where it uses keys of its own, named after a
// random run, and removes them at the end.
//
// The exit code is 0 if all went as promised, and 1 if not.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"relock/election"
	"relock/examples/internal/demo"
	"relock/fairlock"
	"relock/rlock"
)

const (
	patience = time.Minute // for a run, whatever happens to Redis
	contest  = "scheduler" // the name of the election
)

func main() {
	if name := os.Getenv(candidateEnv); name != "" {
		if err := candidate(name); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	redis, err := demo.OpenRedis(os.Getenv("REDIS_ADDR"), "relock-election")
	if err == nil {
		err = run(ctx, redis, os.Getenv("REDIS_ADDR"), time.Second, os.Stdout)
		redis.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nelection:", err)
		os.Exit(1)
	}
}

// A show is one run: three candidates, and what an observer sees of them.
type show struct {
	redis   *demo.Redis
	addr    string        // for the candidates
	lease   time.Duration // of the candidates: how long a dead one leads
	out     io.Writer
	session *rlock.Session
	leaders <-chan election.Leader
	began   time.Time
}

// run shows the election. It returns an error too if it did not go as promised. addr is where
// the candidates find Redis; "" stands for the first address of redis.
func run(ctx context.Context, redis *demo.Redis, addr string, lease time.Duration, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if addr == "" {
		addr = redis.Option.InitAddress[0]
	}
	session, err := rlock.Dial(ctx, redis.Option, rlock.Config{Prefix: redis.Prefix})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove(context.WithoutCancel(ctx), redis), session.Close()) }()
	s := &show{redis: redis, addr: addr, lease: lease, out: out, session: session, began: time.Now()}
	if s.leaders, err = election.New(session, contest).Observe(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "relock election\n\n  Redis: %s\n  Keys:  %s..., removed at the end\n\n", redis.Text, redis.Prefix)
	return s.play(ctx)
}

// play starts the candidates one after the other, and ends the leaders one after the other.
func (s *show) play(ctx context.Context) error {
	var processes [3]*process
	for i, name := range []string{"ada", "grace", "barbara"} {
		p, err := s.start(ctx, name)
		if err != nil {
			return err
		}
		defer p.kill()
		processes[i] = p
		s.say("%s stands for election, process %d", name, p.cmd.Process.Pid)
		if i == 0 {
			err = s.expect(ctx, name+", working", 1)
		} else {
			err = s.queued(ctx, i)
		}
		if err != nil {
			return err
		}
	}
	s.say("ada is killed")
	killed := time.Now()
	processes[0].kill()
	if err := s.expect(ctx, "grace, working", 2); err != nil {
		return err
	}
	afterCrash := time.Since(killed)
	s.say("grace is told to resign")
	told := time.Now()
	if err := processes[1].resign(); err != nil {
		return err
	}
	if err := s.expect(ctx, "barbara, working", 3); err != nil {
		return err
	}
	afterResign := time.Since(told)
	if err := errors.Join(processes[2].resign(), processes[1].wait(), processes[2].wait()); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\n  After the crash a new leader came in %v (the lease is %v),\n  after the resignation in %v.\n",
		afterCrash.Round(time.Millisecond), s.lease, afterResign.Round(100*time.Microsecond))
	return check(s.lease, afterCrash, afterResign)
}

// check returns how the times break the promises. A leader that dies right after a renewal is
// followed a lease later, and at a heartbeat of the next candidate.
func check(lease, afterCrash, afterResign time.Duration) error {
	switch {
	case afterCrash < lease/2 || afterCrash > 3*lease:
		return fmt.Errorf("the leader that died was followed after %v", afterCrash)
	case afterResign > lease/2:
		return fmt.Errorf("the leader that resigned was followed after %v", afterResign)
	}
	return nil
}

// expect waits for the observer to see a leader.
func (s *show) expect(ctx context.Context, value string, term int64) error {
	for {
		select {
		case l := <-s.leaders:
			s.say("term %d is led by %s", l.Term, l.Value)
			if l.Term == term && l.Value == value {
				return nil
			}
			if l.Term > term {
				return fmt.Errorf("term %d is led by %q, want %q in term %d", l.Term, l.Value, value, term)
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for term %d: %w", term, ctx.Err())
		}
	}
}

// queued waits until n candidates wait for their turn.
func (s *show) queued(ctx context.Context, n int) error {
	for {
		got, err := fairlock.New(s.session, contest).Waiters(ctx)
		if err != nil || got == n {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *show) say(format string, args ...any) {
	fmt.Fprintf(s.out, "  %6.3f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// remove deletes the keys that outlive an election.
func remove(ctx context.Context, redis *demo.Redis) error {
	client, err := rueidis.NewClient(redis.Option)
	if err != nil {
		return err
	}
	defer client.Close()
	name := "{" + redis.Prefix + contest + "}"
	for _, key := range []string{"redisson_lock_token:" + name, "relock_leader:" + name} {
		err = errors.Join(err, client.Do(ctx, client.B().Del().Key(key).Build()).Error())
	}
	return err
}
