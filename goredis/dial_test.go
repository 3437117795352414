package goredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"relock/goredis"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// lock dials with converted options, and takes a lock.
func lock(t *testing.T, o *redis.UniversalOptions) error {
	t.Helper()
	opt, err := goredis.Options(o)
	must(t, err)
	ctx := locktest.Within(t, 20*time.Second)
	ses, err := rlock.Dial(ctx, opt, rlock.Config{})
	if err != nil {
		return err
	}
	defer ses.Close()
	return rlock.New(ses, "x").Do(ctx, func(context.Context) error { return nil })
}

// A session reaches what a go-redis client would, as the same user.
func TestDial(t *testing.T) {
	t.Parallel()
	must(t, lock(t, &redis.UniversalOptions{Addrs: []string{redistest.Mini(t).Addr}}))
	must(t, lock(t, &redis.UniversalOptions{Addrs: []string{redistest.Mini(t).Addr}, DB: -1})) // none is selected
	s, a := redistest.Real(t), redistest.NewAuthority(t)
	must(t, s.Do(t, "ACL", "SETUSER", "me", "on", ">secret", "~*", "&*", "+@all").Error())
	addrs := []string{s.Addr}
	var asked, dialled atomic.Int32
	wrong := func() (string, string) { return "me", "other" }
	right := func(context.Context) (string, string, error) { asked.Add(1); return "me", "secret", nil }
	must(t, lock(t, &redis.UniversalOptions{Addrs: addrs, Username: "me", Password: "secret"}))
	must(t, lock(t, &redis.UniversalOptions{Addrs: addrs, Password: "no", CredentialsProviderContext: right, CredentialsProvider: wrong}))
	if asked.Load() == 0 {
		t.Error("the provider was not asked")
	}
	err := lock(t, &redis.UniversalOptions{Addrs: addrs, Username: "me", Password: "secret", CredentialsProvider: wrong})
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a provider with a wrong password: %v", err)
	}
	failed := errors.New("no credentials today")
	err = lock(t, &redis.UniversalOptions{Addrs: addrs, CredentialsProviderContext: func(context.Context) (string, string, error) { return "", "", failed }})
	if !errors.Is(err, failed) {
		t.Errorf("a provider that fails: %v", err)
	}
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		dialled.Add(1)
		return new(net.Dialer).DialContext(ctx, network, s.Addr)
	}
	must(t, lock(t, &redis.UniversalOptions{Addrs: []string{"through.a.tunnel:1"}, Username: "me", Password: "secret", Dialer: dial, TLSConfig: shared}))
	if dialled.Load() == 0 {
		t.Error("the Dialer was not used")
	}
	secure := s.ServeTLS(t, redistest.TLS{Authority: a})
	must(t, lock(t, &redis.UniversalOptions{Addrs: []string{secure}, Username: "me", Password: "secret", TLSConfig: a.Client()}))
}

// A socket is reached, and TLS is spoken beside one too: with Sentinels at a socket the servers are at other addresses.
func TestDialSocket(t *testing.T) {
	t.Parallel()
	s, a := redistest.Real(t), redistest.NewAuthority(t)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	must(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pass(c, s.Addr)
		}
	}()
	must(t, lock(t, &redis.UniversalOptions{Addrs: []string{path}}))
	opt, err := goredis.Options(&redis.UniversalOptions{Addrs: []string{path}, MasterName: "m", TLSConfig: a.Client()})
	must(t, err)
	c, err := opt.DialCtxFn(t.Context(), s.ServeTLS(t, redistest.TLS{Authority: a}), new(net.Dialer), opt.TLSConfig)
	must(t, err)
	defer c.Close()
	if _, encrypted := c.(*tls.Conn); !encrypted {
		t.Errorf("the connection is a %T", c)
	}
}

// pass passes on what comes over a connection to a server, and back.
func pass(c net.Conn, addr string) {
	defer c.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { _, _ = io.Copy(server, c); _ = server.Close() }()
	_, _ = io.Copy(c, server)
}

// A name without a password is no user for go-redis, as where one stands in the options and the password, in a variable,
// is missing: the server's default user is asked for nothing.
func TestDialWithANameAlone(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	nobody := func() (string, string) { return "nobody", "" }
	for _, o := range []*redis.UniversalOptions{
		{Addrs: []string{s.MasterAddr(t)}, Username: "nobody"},
		{Addrs: []string{s.MasterAddr(t)}, CredentialsProvider: nobody},
		{Addrs: s.SentinelAddrs, MasterName: s.MasterName, Username: "nobody", SentinelUsername: "nobody"},
		{Addrs: s.SentinelAddrs, MasterName: s.MasterName, CredentialsProvider: nobody, SentinelUsername: "nobody"},
	} {
		client := redis.NewUniversalClient(o)
		defer client.Close()
		must(t, client.Ping(t.Context()).Err())
		if err := lock(t, o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestDialSentinel(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	must(t, lock(t, &redis.UniversalOptions{Addrs: s.SentinelAddrs, MasterName: s.MasterName, DB: 2}))
}

// A provider has the credentials for servers, as in go-redis: the Sentinels have their own, or none.
func TestDialSentinelWithAProvider(t *testing.T) {
	t.Parallel()
	s := redistest.NewSentinel(t)
	must(t, s.Node(s.MasterAddr(t)).Do(t, "ACL", "SETUSER", "me", "on", ">secret", "~*", "&*", "+@all").Error())
	right := func() (string, string) { return "me", "secret" }
	o := &redis.UniversalOptions{Addrs: s.SentinelAddrs, MasterName: s.MasterName, CredentialsProvider: right}
	must(t, lock(t, o))
	for _, addr := range s.SentinelAddrs {
		sentinel := redis.NewClient(&redis.Options{Addr: addr})
		defer sentinel.Close()
		must(t, sentinel.Do(t.Context(), "ACL", "SETUSER", "watch", "on", ">other", "&*", "+@all").Err())
		must(t, sentinel.Do(t.Context(), "ACL", "SETUSER", "default", "off").Err())
	}
	if err := lock(t, o); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without the credentials of the Sentinels: %v", err)
	}
	o.SentinelUsername, o.SentinelPassword = "watch", "other"
	must(t, lock(t, o))
}
