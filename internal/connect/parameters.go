package connect

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// A parameter of a URL.
type parameter struct {
	name     string
	is       func(value string) bool
	must     string // what a value must be
	tls      bool   // for rediss:// only
	sentinel bool   // with master_set only
	many     bool
}

// The parameters that a URL may have; rlock.DialURL says what they are for.
var parameters = []parameter{
	{name: "addr", is: isText, must: "host:port", many: true},
	{name: "db", is: isDatabase, must: "the number of a database"},
	{name: "dial_timeout", is: isTime, must: "a time like 2s"},
	{name: "write_timeout", is: isTime, must: "a time like 2s"},
	{name: "client_name", is: isText, must: "a name"},
	{name: "protocol", is: func(v string) bool { return v == "2" || v == "3" }, must: "2 or 3"},
	{name: "client_cache", is: isBool, must: "0 or 1"},
	{name: "max_retries", is: isDatabase, must: "a number; 0 turns the client's own retries off"},
	{name: "master_set", is: isText, must: "the name by which the Sentinels know the primary"},
	{name: "sentinel_username", is: isText, must: "a name", sentinel: true},
	{name: "sentinel_password", is: isText, must: "given, or left out", sentinel: true},
	{name: "sentinel_tls", is: isBool, must: "true or false", tls: true, sentinel: true},
	{name: "skip_verify", is: func(v string) bool { return v == "" || isBool(v) }, must: "true or false", tls: true},
	{name: "server_name", is: func(string) bool { return true }, tls: true},
	{name: "cacert", is: isText, must: "the name of a file", tls: true},
	{name: "cert", is: isText, must: "the name of a file", tls: true},
	{name: "key", is: isText, must: "the name of a file", tls: true},
}

func isText(v string) bool { return v != "" }

func isBool(v string) bool { _, err := strconv.ParseBool(v); return err == nil }

func isTime(v string) bool { d, err := time.ParseDuration(v); return err == nil && d > 0 }

// checkParameters refuses parameters that are not known, given twice, or of no effect.
func checkParameters(u *url.URL, q url.Values) error {
	known := 0
	for _, p := range parameters {
		values := q[p.name]
		if values == nil {
			continue
		}
		known++
		for _, v := range values {
			if !p.is(v) && strings.HasSuffix(p.name, "password") {
				return bad("%s must be %s", p.name, p.must)
			} else if !p.is(v) {
				return bad("%s is %.100q; it must be %s", p.name, v, p.must)
			}
		}
		switch {
		case len(values) > 1 && !p.many:
			return bad("%s is given %d times; once is enough", p.name, len(values))
		case p.tls && u.Scheme != "rediss" && u.Scheme != "valkeys":
			return bad("the parameter %s is for rediss://", p.name)
		case p.sentinel && !q.Has("master_set"):
			return bad("the parameter %s is for Sentinels, and needs master_set: the name by which they know the primary", p.name)
		case u.Scheme == "unix" && (p.many || p.name == "master_set"):
			return bad("the parameter %s is not for unix://; it names hosts, or is about them", p.name)
		}
	}
	if known < len(q) { // a name may be a part of a password
		return bad("the URL has a parameter that is not known; there are %s", strings.Join(names(), ", "))
	}
	return nil
}

func names() []string {
	var all []string
	for _, p := range parameters {
		all = append(all, p.name)
	}
	return slices.Sorted(slices.Values(all))
}

// secure adds what a URL says of TLS and rueidis does not know.
func secure(opt *rueidis.ClientOption, q url.Values) error {
	if opt.TLSConfig == nil {
		return nil
	}
	if q.Has("server_name") {
		opt.TLSConfig.ServerName = q.Get("server_name")
	}
	if name := q.Get("cacert"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return bad("cacert: %v", err)
		}
		opt.TLSConfig.RootCAs = x509.NewCertPool()
		if !opt.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return bad("cacert: %s has no certificate in PEM", name)
		}
	}
	if cert, key := q.Get("cert"), q.Get("key"); cert != "" || key != "" {
		if cert == "" || key == "" {
			return bad("cert and key: one of them is missing; both are needed")
		}
		own, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return bad("cert and key: %v", err)
		}
		opt.TLSConfig.Certificates = []tls.Certificate{own}
	}
	// isBool has accepted it, if it is given.
	if speak, err := strconv.ParseBool(q.Get("sentinel_tls")); opt.Sentinel.MasterSet != "" && (err != nil || speak) {
		opt.Sentinel.TLSConfig = opt.TLSConfig
	}
	return nil
}
