package redistest_test

import (
	"crypto/tls"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
)

// A server speaks TLS as it is told, beside what it speaks as ever, and no more so in the next test.
func TestServeTLS(t *testing.T) {
	var last string
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		last = s.Addr
		a := redistest.NewAuthority(t)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(tls.VersionName(version), func(t *testing.T) {
				addr := s.ServeTLS(t, redistest.TLS{Authority: a, Hosts: []string{"redis.test"}, Clients: true, Version: version})
				cfg := a.Client(a.Certificate(t))
				cfg.ServerName = "redis.test"
				cfg.VerifyConnection = func(state tls.ConnectionState) error {
					if state.Version != version {
						t.Errorf("it speaks %s", tls.VersionName(state.Version))
					}
					return nil
				}
				mod := func(o *rueidis.ClientOption) { o.InitAddress, o.TLSConfig = []string{addr}, cfg }
				mustDo(t, s.Client(t, mod), "SET", "k", "v")
				if got := mustDo(t, s.Client(t), "GET", "k"); got != "v" {
					t.Errorf("without TLS: %q", got)
				}
				for what, wrong := range map[string]*tls.Config{"no certificate": a.Client(), "another authority": redistest.NewAuthority(t).Client(a.Certificate(t))} {
					wrong.ServerName = "redis.test"
					o := s.Option()
					o.InitAddress, o.TLSConfig = []string{addr}, wrong
					if c, err := rueidis.NewClient(o); err == nil {
						c.Close()
						t.Errorf("%s: no error", what)
					}
				}
			})
		}
	})
	s := redistest.Real(t)
	if s.Addr != last {
		t.Error("a server that has spoken TLS serves no other test")
	}
	config, err := s.Do(t, "CONFIG", "GET", "tls-port").AsStrMap()
	if port, built := config["tls-port"]; err != nil || built && port != "0" {
		t.Errorf("it speaks TLS there too: %v, %v", config, err)
	}
}
