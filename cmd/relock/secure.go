package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"os"
	"strconv"

	"github.com/redis/rueidis"
)

// secure adds to opt what --redis says of TLS and rueidis does not know: the parameters cacert, cert, key
// and sentinel_tls.
func secure(opt *rueidis.ClientOption, redis string) error {
	u, err := url.Parse(redis)
	if err != nil {
		return nil // which rueidis has said
	}
	q := u.Query()
	if opt.TLSConfig == nil {
		for _, name := range []string{"cacert", "cert", "key", "sentinel_tls"} {
			if q.Has(name) {
				return usage("--redis: the parameter %s is for rediss://", name)
			}
		}
		return nil
	}
	if name := q.Get("cacert"); name != "" {
		text, err := os.ReadFile(name)
		if err != nil {
			return usage("--redis: cacert: %v", err)
		}
		opt.TLSConfig.RootCAs = x509.NewCertPool()
		if !opt.TLSConfig.RootCAs.AppendCertsFromPEM(text) {
			return usage("--redis: cacert: %s has no certificate in PEM", name)
		}
	}
	if cert, key := q.Get("cert"), q.Get("key"); cert != "" || key != "" {
		own, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return usage("--redis: cert and key: %v", err)
		}
		opt.TLSConfig.Certificates = []tls.Certificate{own}
	}
	sentinels := true
	if q.Has("sentinel_tls") {
		if sentinels, err = strconv.ParseBool(q.Get("sentinel_tls")); err != nil {
			return usage("--redis: sentinel_tls must be true or false")
		}
	}
	if opt.Sentinel.MasterSet != "" && sentinels {
		opt.Sentinel.TLSConfig = opt.TLSConfig
	}
	return nil
}
