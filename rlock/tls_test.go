package rlock_test

import (
	"crypto/tls"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// The tests of this file and of tls_dial_test.go are about TLS.

// A secured server is one that speaks TLS, as a session's client sees it.
type secured struct {
	opt      rueidis.ClientOption
	shakes   atomic.Int32           // handshakes, of which each is a connection
	resumed  atomic.Int32           // those that went on with a ticket of an earlier one
	version  atomic.Uint32          // of the last one
	distrust atomic.Pointer[string] // why the client does not accept the server, if not nil
}

// secure returns options that lead to addr, which speaks TLS.
func secure(s *redistest.Server, addr string, cfg *tls.Config) *secured {
	x := &secured{opt: s.Option()}
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(8) // or the client asks for no tickets
	cfg.VerifyConnection = func(state tls.ConnectionState) error {
		x.shakes.Add(1)
		x.version.Store(uint32(state.Version))
		if state.DidResume {
			x.resumed.Add(1)
		}
		if why := x.distrust.Load(); why != nil {
			return errors.New(*why)
		}
		return nil
	}
	x.opt.InitAddress, x.opt.TLSConfig = []string{addr}, cfg
	return x
}

// secureProxied is secure with a proxy of the test's between what speaks TLS and the server.
func secureProxied(t *testing.T, s *redistest.Server) (*secured, *faulttest.Proxy) {
	t.Helper()
	p, a := faulttest.New(t, s.Addr), redistest.NewAuthority(t)
	return secure(s, redistest.FrontTLS(t, p.Addr(), redistest.TLS{Authority: a}), a.Client()), p
}

func (x *secured) dial(t *testing.T, cfg rlock.Config) *rlock.Session {
	t.Helper()
	ses, err := rlock.Dial(within(t, time.Minute), x.opt, cfg)
	must(t, err)
	t.Cleanup(func() { _ = ses.Close() })
	return ses
}

// lastClient returns what CLIENT LIST says of the youngest connection to an address of the server's.
func lastClient(t *testing.T, s *redistest.Server, addr string) (line string) {
	t.Helper()
	list, err := s.Do(t, "CLIENT", "LIST").ToString()
	must(t, err)
	last := -1
	for l := range strings.Lines(list) {
		_, after, _ := strings.Cut(l, "id=")
		id, _, _ := strings.Cut(after, " ")
		if n, err := strconv.Atoi(id); err == nil && n > last && strings.Contains(l, " laddr="+addr+" ") {
			line, last = l, n
		}
	}
	return line
}

// Locks that are alone go over the third connection, the direct one, as they do without TLS. What a server
// says of itself, as the tickets of TLS 1.3, does not make a session take it for one that is broken.
func TestTLS(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			redistest.Each(t, func(t *testing.T, s *redistest.Server) {
				a := redistest.NewAuthority(t)
				addr := s.ServeTLS(t, redistest.TLS{Authority: a, Version: version})
				x := secure(s, addr, a.Client())
				m := rlock.New(x.dial(t, rlock.Config{}), redistest.Name(t))
				for range 20 {
					locktest.LockOnce(t, m)
				}
				if x.shakes.Load() != 3 || x.version.Load() != uint32(version) {
					t.Errorf("%d connections, the last one with %s", x.shakes.Load(), tls.VersionName(uint16(x.version.Load())))
				}
				if x.resumed.Load() == 0 {
					t.Error("the server has sent no tickets; the test shows less than it should")
				}
				if !s.IsMini() && !strings.Contains(lastClient(t, s, addr), " cmd=evalsha ") {
					t.Errorf("no script went over the direct connection: %s", lastClient(t, s, addr))
				}
			})
		})
	}
}

// The connection has broken, and no handshake succeeds, as where a certificate has expired: no release was
// sent. When one succeeds again Redis does not know the lock. So the Unlock was too late, and says so.
func TestTLSUnlockBehindHandshakesThatFail(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		x, p := secureProxied(t, s)
		ses, name := x.dial(t, rlock.Config{ReleaseTimeout: time.Minute}), redistest.Name(t)
		_, h, err := rlock.New(ses, name).Lock(within(t, time.Minute))
		must(t, err)
		why := "it has expired"
		x.distrust.Store(&why)
		p.Cut()
		_, _, err = rlock.New(ses, name+"2").TryLock(within(t, time.Minute))
		for err == nil || !strings.Contains(err.Error(), why) { // it may have noticed the cut alone
			_, _, err = rlock.New(ses, name+"2").TryLock(within(t, time.Minute))
		}
		locktest.Is(t, "TryLock", err, rlock.ErrUnavailable)
		unlocked := locktest.Go(h.Unlock)
		before := x.shakes.Load()
		redistest.Eventually(t, time.Minute, "handshakes for the release", func() bool { return x.shakes.Load() > before+2 })
		must(t, s.Do(t, "DEL", name).Error())
		x.distrust.Store(nil)
		locktest.Is(t, "Unlock", locktest.Get(t, unlocked, time.Minute, "Unlock"), rlock.ErrLost)
	})
}
