package main_test

import (
	"net/url"
	"strings"
	"testing"

	"relock/internal/test/redistest"
)

// A server that speaks TLS, and asks for a certificate, is reached by what the URL says; without that the
// error says what is wrong.
func TestTLS(t *testing.T) {
	t.Parallel()
	s, a := redistest.Real(t), redistest.NewAuthority(t)
	addr := s.ServeTLS(t, redistest.TLS{Authority: a, Clients: true})
	ca, cert, key := a.Files(t)
	at := func(scheme, addr string, q url.Values) cli {
		return cli{t, scheme + "://" + addr + "?" + q.Encode()}
	}
	both := url.Values{"cacert": {ca}, "cert": {cert}, "key": {key}}
	if r := at("rediss", addr, both).want(0, "run", "x", "--", "echo", "in"); r.out != "in\n" {
		t.Errorf("run: %q", r.out)
	}
	at("rediss", addr, both).want(0, "ls")
	at("rediss", addr, url.Values{"skip_verify": {"true"}, "cert": {cert}, "key": {key}}).want(0, "ls")
	for _, c := range []struct {
		cli
		code int
		text string
	}{
		{at("rediss", addr, url.Values{"cert": {cert}, "key": {key}}), 69, "certificate signed by unknown authority"},
		{at("rediss", addr, url.Values{"cacert": {key}}), 64, "has no certificate in PEM"},
		{at("rediss", addr, url.Values{"cacert": {ca + "2"}}), 64, "no such file"},
		{at("rediss", addr, url.Values{"cert": {cert}}), 64, "cert and key"},
		{at("rediss", addr, url.Values{"sentinel_tls": {"perhaps"}}), 64, "sentinel_tls"},
		{at("redis", addr, both), 64, "is for rediss://"},
		{at("redis", addr, nil), 64, "speaks TLS only; begin the URL with rediss://"},
		{at("rediss", s.Addr, nil), 64, "does not speak TLS; begin the URL with redis://"},
		{at("rediss", s.Addr, url.Values{"master_set": {"x"}}), 64, "does not speak TLS; add sentinel_tls=false"},
	} {
		for _, args := range [][]string{{"ls"}, {"run", "x", "--", "true"}, {"doctor"}} {
			if r := c.want(c.code, args...); !strings.Contains(r.err, c.text) {
				t.Errorf("%s: %q: %s", c.url, args, r.err)
			}
		}
	}
	// What is asked is no Sentinel, and says so only if it was reached.
	const reached = "unknown command"
	for speaks, addr := range map[string]string{"true": addr, "false": s.Addr} {
		q := url.Values{"cacert": {ca}, "cert": {cert}, "key": {key}, "master_set": {"x"}, "sentinel_tls": {speaks}}
		if r := at("rediss", addr, q).run("ls"); !strings.Contains(r.err, reached) {
			t.Errorf("sentinel_tls=%s: %s", speaks, r.err)
		}
	}
	both.Set("master_set", "x")
	if r := at("rediss", addr, both).run("ls"); !strings.Contains(r.err, reached) {
		t.Errorf("a Sentinel: %s", r.err)
	}
}
