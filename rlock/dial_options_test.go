package rlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Options that the client or the server refuses are no outage: a caller that tried again would for ever.
func TestDialFindsUnfitOptions(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	must(t, s.Do(t, "ACL", "SETUSER", "locks", "on", ">secret", "~*", "&*", "+@all", "-client|no-evict").Error())
	for name, c := range map[string]struct {
		set    func(*rueidis.ClientOption)
		remedy string
	}{
		"the replica of one server": {func(o *rueidis.ClientOption) { o.ReplicaOnly = true }, "ReplicaOnly"},
		"no such database":          {func(o *rueidis.ClientOption) { o.SelectDB = 99 }, "DB index"},
		"a command that is not allowed": {func(o *rueidis.ClientOption) {
			o.Username, o.Password, o.ClientNoEvict = "locks", "secret", true
		}, "CLIENT command"},
	} {
		opt := s.Option()
		opt.ForceSingleClient = true
		c.set(&opt)
		_, err := rlock.Dial(within(t, 10*time.Second), opt, rlock.Config{})
		if !errors.Is(err, rlock.ErrConfig) || errors.Is(err, rlock.ErrUnavailable) || !strings.Contains(err.Error(), c.remedy) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that is BUSY with a script refuses also the commands that options ask for: that passes.
func TestDialToABusyServerIsAnOutage(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	ctx := within(t, time.Minute)
	must(t, s.Do(t, "CONFIG", "SET", "lua-time-limit", "1").Error())
	slow, ended := s.Client(t), make(chan struct{})
	go func() {
		defer close(ended)
		_ = slow.Do(ctx, slow.B().Eval().Script("while true do end").Numkeys(0).Build()).Error()
	}()
	redistest.Eventually(t, 10*time.Second, "the server to be busy", func() bool {
		err := s.Do(t, "PING").Error()
		return err != nil && strings.HasPrefix(err.Error(), "BUSY")
	})
	opt := s.Option()
	opt.ForceSingleClient, opt.ClientNoEvict = true, true
	if _, err := rlock.Dial(ctx, opt, rlock.Config{}); !errors.Is(err, rlock.ErrUnavailable) || errors.Is(err, rlock.ErrConfig) {
		t.Errorf("%v; want ErrUnavailable", err)
	}
	must(t, s.Do(t, "SCRIPT", "KILL").Error())
	<-ended
}

// Options that an application shares with its cache may send reads, or all commands, to replicas. Locks go
// to primaries all the same.
func TestDialSendsNothingToReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	one := s.Node(s.MasterAddr(t)).Option()
	one.ForceSingleClient = false
	one.Standalone.ReplicaAddress = []string{"127.0.0.1:1"} // where nobody is
	c := redistest.NewCluster(t)
	for _, addr := range c.Addrs[:1] {
		c.AddReplica(t, addr)
	}
	for name, opt := range map[string]rueidis.ClientOption{"one server": one, "Sentinel": s.Option(), "Cluster": c.Option()} {
		opt.SendToReplicas = func(rueidis.Completed) bool {
			t.Errorf("%s: a command could go to a replica", name)
			return true
		}
		ctx := within(t, 20*time.Second)
		ses, err := rlock.Dial(ctx, opt, rlock.Config{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m := rlock.New(ses, "x")
		must(t, m.Do(ctx, func(ctx context.Context) error {
			_, err := m.State(ctx)
			return err
		}))
		must(t, ses.Close())
	}
}
