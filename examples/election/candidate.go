// This file is about the candidates: one process each.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"relock/election"
	"relock/examples/internal/demo"
	"relock/rlock"
)

// What a candidate is told in its environment.
const (
	candidateEnv = "RELOCK_ELECTION_CANDIDATE" // its name; makes a process a candidate
	addrEnv      = "RELOCK_ELECTION_REDIS"
	prefixEnv    = "RELOCK_ELECTION_PREFIX"
	leaseEnv     = "RELOCK_ELECTION_LEASE"
	singleEnv    = "RELOCK_ELECTION_SINGLE" // set if Redis is no Cluster for sure
)

// candidate is the whole life of a candidate: it stands for election, works as the leader, and
// resigns when its standard input ends.
func candidate(name string) error {
	ctx := context.Background()
	redis, err := demo.OpenRedis(os.Getenv(addrEnv), "")
	if err != nil {
		return err
	}
	redis.Option.ForceSingleClient = os.Getenv(singleEnv) != ""
	lease, err := time.ParseDuration(os.Getenv(leaseEnv))
	if err != nil {
		return err
	}
	// The waiter's heartbeats are a fifth of QueueLease apart.
	session, err := rlock.Dial(ctx, redis.Option, rlock.Config{Prefix: os.Getenv(prefixEnv), Lease: lease, QueueLease: lease})
	if err != nil {
		return err
	}
	defer session.Close()
	leading, leadership, err := election.New(session, contest).Campaign(ctx, name)
	if err != nil {
		return err
	}
	if err := leadership.Publish(leading, name+", working"); err != nil {
		return err
	}
	told := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(told)
	}()
	select {
	case <-told:
		return leadership.Resign()
	case <-leading.Done(): // a real leader stops its work here
		return context.Cause(leading)
	}
}

// A process is a candidate that this program has started.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended bool
}

// start starts a candidate.
func (s *show) start(ctx context.Context, name string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), candidateEnv+"="+name, addrEnv+"="+s.addr, prefixEnv+"="+s.redis.Prefix, leaseEnv+"="+s.lease.String())
	if s.redis.Option.ForceSingleClient {
		p.cmd.Env = append(p.cmd.Env, singleEnv+"=1")
	}
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// kill ends the process as a crash would. It may be called again.
func (p *process) kill() {
	if !p.ended {
		p.ended = true
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// resign tells the process to resign.
func (p *process) resign() error { return p.stdin.Close() }

// wait waits for the end of a process that was told to resign.
func (p *process) wait() error {
	p.ended = true
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("the candidate ended with %w", err)
	}
	return nil
}
