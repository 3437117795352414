package rlock_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// dialURL dials, and takes a lock to see that it is a session.
func dialURL(t testing.TB, url string) error {
	t.Helper()
	ctx := within(t, 20*time.Second)
	ses, err := rlock.DialURL(ctx, url, rlock.Config{})
	if err != nil {
		return err
	}
	defer ses.Close()
	return rlock.New(ses, "x").Do(ctx, func(context.Context) error { return nil })
}

// A URL leads to each deployment that there is.
func TestDialURL(t *testing.T) {
	t.Parallel()
	must(t, dialURL(t, "redis://"+redistest.Mini(t).Addr))
	s := redistest.Real(t)
	must(t, s.Do(t, "ACL", "SETUSER", "me", "on", ">p@ss/word", "~*", "&*", "+@all").Error())
	must(t, dialURL(t, "redis://"+s.Addr))
	must(t, dialURL(t, "redis://me:p%40ss%2Fword@"+s.Addr+"/3"))
	if n, err := s.Do(t, "EXISTS", "x").AsInt64(); err != nil || n != 0 {
		t.Errorf("the lock is left: %d, %v", n, err)
	}
	err := dialURL(t, "redis://me:other@"+s.Addr)
	if !errors.Is(err, rlock.ErrUnavailable) && !errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a wrong password: %v", err)
	}

	sentinel := redistest.NewSentinel(t)
	q := url.Values{"addr": sentinel.SentinelAddrs[1:], "master_set": {sentinel.MasterName}}
	must(t, dialURL(t, "redis://"+sentinel.SentinelAddrs[0]+"?"+q.Encode()))
	cluster := redistest.NewCluster(t)
	must(t, dialURL(t, "redis://"+cluster.Addrs[0]))
	must(t, dialURL(t, "redis://"+cluster.Addrs[0]+"?addr="+cluster.Addrs[1]))
}

// TLS by the URL. Where it does not fit the error says so, in the URL's terms, long before the 5 s for
// which a server without TLS would let the client wait.
func TestDialURLWithTLS(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a := redistest.NewAuthority(t)
		addr := s.ServeTLS(t, redistest.TLS{Authority: a, Clients: true})
		ca, cert, key := a.Files(t)
		all := url.Values{"cacert": {ca}, "cert": {cert}, "key": {key}}
		if !s.IsMini() { // which says it is a Cluster, at its address without TLS
			must(t, dialURL(t, "rediss://"+addr+"?"+all.Encode()))
		}
		all.Set("server_name", "other")
		for what, c := range map[string]struct {
			url  string
			err  error
			text string
		}{
			"another name":   {"rediss://" + addr + "?" + all.Encode(), rlock.ErrUnavailable, "not other"},
			"no certificate": {"rediss://" + addr + "?cacert=" + url.QueryEscape(ca), rlock.ErrUnavailable, "the URL has none: cert and key"},
			"plain client":   {"redis://" + addr, rlock.ErrConfig, "begin the URL with rediss://"},
		} {
			if err := dialURL(t, c.url); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, c := range map[string]struct{ url, text string }{
			"plain server":    {"rediss://" + s.Addr, "begin the URL with redis://"},
			"plain Sentinel":  {"rediss://" + s.Addr + "?master_set=m", "add sentinel_tls=false"},
			"plain and plain": {"rediss://" + s.Addr + "?addr=" + s.Addr, "begin the URL with redis://"},
		} {
			began := time.Now()
			err := dialURL(t, c.url)
			if !errors.Is(err, rlock.ErrConfig) || errors.Is(err, rlock.ErrUnavailable) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v", what, err)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("%s: it took %v", what, took)
			}
		}
	})
}

// A bad URL is ErrConfig, without its password, and nothing is dialled; a context that has ended is its error.
func TestDialURLRefuses(t *testing.T) {
	t.Parallel()
	ctx := within(t, 10*time.Second)
	for _, url := range []string{"", "localhost:6379", "redis://:se/cret@host", "redis://:secret@host/x", "redis://:secret@host?nothing=1"} {
		if _, err := rlock.DialURL(ctx, url, rlock.Config{}); !errors.Is(err, rlock.ErrConfig) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
	var none context.Context
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := rlock.DialURL(done, "redis://localhost", rlock.Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, err := rlock.DialURL(none, "redis://localhost", rlock.Config{}); !errors.Is(err, rlock.ErrArgument) {
		t.Errorf("no context: %v", err)
	}
	if _, err := rlock.DialURL(ctx, "redis://localhost", rlock.Config{Lease: -1}); !errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), "Lease") {
		t.Errorf("a bad Config: %v", err)
	}
}

// Where a server asks for a password, and where several addresses are those of no Cluster, the error says what to do.
func TestDialExplainsPasswordsAndAddresses(t *testing.T) {
	t.Parallel()
	ctx := within(t, 20*time.Second)
	locked, one, two := redistest.Real(t, "--loglevel", "notice"), redistest.Real(t), redistest.Real(t)
	must(t, locked.Do(t, "CONFIG", "SET", "requirepass", "secret").Error())
	for _, c := range []struct {
		url     string
		servers []string
		want    error
		inURL   string
		inOpt   string
	}{
		{"redis://" + locked.Addr, []string{locked.Addr}, rlock.ErrUnavailable, "redis://user:password@", "ClientOption.Password"},
		{"redis://" + one.Addr + "?addr=" + two.Addr, []string{one.Addr, two.Addr}, rlock.ErrConfig, "the URL has several addresses", "ClientOption has several addresses"},
	} {
		if err := dialURL(t, c.url); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.inURL) {
			t.Errorf("%s: %v, want %q", c.url, err, c.inURL)
		}
		_, err := rlock.Dial(ctx, rueidis.ClientOption{InitAddress: c.servers}, rlock.Config{})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.inOpt) {
			t.Errorf("%s: %v, want %q", c.servers, err, c.inOpt)
		}
	}
}
