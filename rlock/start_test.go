package rlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A server that can never run locks is found when the session begins, and the error says what
// to do about it.
func TestStartFindsAServerThatCannotWork(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	users := 0
	user := func(rules ...string) rueidis.ClientOption {
		users++
		name := fmt.Sprint("user-", users)
		must(t, s.Do(t, append([]string{"ACL", "SETUSER", name, "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
		opt := s.Option()
		opt.Username, opt.Password = name, "secret"
		return opt
	}
	locktest.CannotWork(t, "no EVAL", user("-eval", "-evalsha"), rlock.Config{}, "+eval")
	locktest.CannotWork(t, "no HINCRBY", user("-hincrby"), rlock.Config{}, "commands that docs/operations.md#acl lists")
	locktest.CannotWork(t, "no PUBLISH", user("-publish"), rlock.Config{}, "+publish")
	locktest.CannotWork(t, "no channel", user("resetchannels", "&relock_session:*"), rlock.Config{}, "channels that docs/operations.md#acl lists")
	locktest.CannotWork(t, "no keys", user("resetkeys", "~other:*", "~relock_*"), rlock.Config{Prefix: "app:"}, `"app:"`)

	listen := []string{"-subscribe"}
	if redistest.ServerVersion(t).Sharded() {
		listen = append(listen, "-ssubscribe")
	}
	// These can work: keys of other names, and no right to subscribe, or to write the record.
	for what, opt := range map[string]rueidis.ClientOption{
		"other keys":   user("resetkeys", "~app:*"),
		"no SUBSCRIBE": user(listen...),
	} {
		ses, err := rlock.Dial(within(t, 20*time.Second), opt, rlock.Config{})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		must(t, rlock.New(ses, "app:x").Do(within(t, 20*time.Second), func(context.Context) error { return nil }))
		must(t, ses.Close())
	}

	primary := redistest.Real(t)
	_, port, _ := net.SplitHostPort(primary.Addr)
	must(t, s.Do(t, "REPLICAOF", "127.0.0.1", port).Error())
	locktest.CannotWork(t, "replica", s.Option(), rlock.Config{}, "replica")
}

func TestStartFindsANodeOfACluster(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	node := redistest.Real(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
	slots := []string{"CLUSTER", "ADDSLOTS"}
	for slot := range 16384 {
		slots = append(slots, fmt.Sprint(slot))
	}
	must(t, node.Do(t, slots...).Error())
	redistest.Eventually(t, 10*time.Second, "the cluster to be up", func() bool {
		info, err := node.Do(t, "CLUSTER", "INFO").ToString()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	locktest.CannotWork(t, "a node of a Cluster", node.Option(), rlock.Config{}, "ForceSingleClient")
}

// A server of before Redis 6.2, whose scripts lack what those of this module need, is refused.
func TestStartFindsAnOldVersion(t *testing.T) {
	t.Parallel()
	s := redistest.Old(t)
	locktest.CannotWork(t, "an old server", s.Option(), rlock.Config{}, "older than Redis 6.2; use a later one")
	locktest.CannotWork(t, "an old server, polled", s.Option(), rlock.Config{Polling: rlock.Linear(time.Second)}, "older than Redis 6.2; use a later one")
	if left, err := s.Do(t, "KEYS", "*").AsStrSlice(); err != nil || len(left) > 0 {
		t.Errorf("the server has %q, %v", left, err)
	}
}

// An address that is a URL, or TLS on one side only, is found by Dial.
func TestDialFindsAWrongAddress(t *testing.T) {
	rlock.AskForTLS(t, 30*time.Second) // a handshake takes its time on a busy machine
	s := redistest.Mini(t)
	opt := s.Option()
	opt.InitAddress = []string{"redis://me:secret@" + s.Addr}
	_, err := rlock.Dial(within(t, 5*time.Second), opt, rlock.Config{})
	if !errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), "DialURL") || strings.Contains(err.Error(), "secret") {
		t.Errorf("URL: %v", err)
	}
	for _, addr := range []string{"localhost", "localhost:", "::1", "::1:6379", "/run/redis.sock", ""} {
		opt = s.Option()
		opt.InitAddress = append(opt.InitAddress, addr)
		_, err := rlock.Dial(within(t, 5*time.Second), opt, rlock.Config{})
		if !errors.Is(err, rlock.ErrConfig) || errors.Is(err, rlock.ErrUnavailable) || !strings.Contains(err.Error(), "must be host:port") {
			t.Errorf("no port: %q: %v", addr, err)
		}
	}
	opt = s.Option()
	opt.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	locktest.CannotWork(t, "TLS to a plain server", opt, rlock.Config{}, "does not speak TLS")

	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate(t)}})
	must(t, err)
	defer ln.Close()
	var accepted atomic.Pointer[context.CancelFunc] // is called then
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			if fn := accepted.Load(); fn != nil {
				(*fn)()
			}
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}
	}()
	opt = s.Option()
	opt.InitAddress = []string{ln.Addr().String()}
	locktest.CannotWork(t, "plain to a TLS server", opt, rlock.Config{}, "speaks TLS only")

	ctx, cancel := context.WithCancel(within(t, 20*time.Second))
	defer cancel()
	accepted.Store(&cancel)
	_, err = rlock.Dial(ctx, opt, rlock.Config{})
	locktest.Is(t, "plain to a TLS server, in a context that has just ended", err, rlock.ErrConfig)

	opt.InitAddress = []string{"127.0.0.1:1"}
	_, err = rlock.Dial(within(t, 5*time.Second), opt, rlock.Config{})
	locktest.Is(t, "nothing listens", err, rlock.ErrUnavailable)
	if errors.Is(err, rlock.ErrConfig) {
		t.Errorf("nothing listens: %v", err)
	}
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A session says who it is under a key of its own, which ends with it.
func TestSessionsRecord(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		open := func(cfg rlock.Config) (*rlock.Session, string) {
			ses, err := rlock.Dial(context.Background(), s.Option(), cfg)
			must(t, err)
			return ses, "relock_session:" + ses.ID()
		}
		read := func(key string) (label string, started int64, version string) {
			text, err := s.Do(t, "GET", key).ToString()
			must(t, err)
			var r struct {
				Label   string
				Started int64
				Version string
			}
			must(t, json.Unmarshal([]byte(text), &r))
			return r.Label, r.Started, r.Version
		}
		host, _ := os.Hostname()
		plain, plainKey := open(rlock.Config{})
		named, namedKey := open(rlock.Config{Label: `orders "eu"` + "\nnode 7", Prefix: "app:"})
		if label, started, version := read(plainKey); label != fmt.Sprint(host, ":", os.Getpid()) ||
			started < time.Now().Add(-time.Minute).UnixMilli() || started > time.Now().Add(time.Minute).UnixMilli() || version != rlock.Version {
			t.Errorf("record: %q, %d, %q", label, started, version)
		}
		label, began, _ := read(namedKey)
		if label != "orders \"eu\"\nnode 7" {
			t.Errorf("label %q", label)
		}
		if s.IsMini() { // by the bubble's clock: it is renewed, and keeps what it said
			time.Sleep(10 * time.Minute)
			if _, again, _ := read(namedKey); again != began {
				t.Errorf("began at %d, and then at %d", began, again)
			}
		}
		if ttl, err := s.Do(t, "PTTL", namedKey).AsInt64(); err != nil || ttl < 60_000 || ttl > 180_000 {
			t.Errorf("TTL %d ms, %v", ttl, err)
		}
		must(t, named.Close())
		must(t, plain.Close())
		for _, key := range []string{plainKey, namedKey} {
			if n, err := s.Do(t, "EXISTS", key).AsInt64(); err != nil || n != 0 {
				t.Errorf("%s is left: %d, %v", key, n, err)
			}
		}
		_, err := rlock.Dial(context.Background(), s.Option(), rlock.Config{Label: strings.Repeat("x", 201)})
		locktest.Is(t, "a long label", err, rlock.ErrConfig)
		if text := err.Error(); strings.Contains(text, "xxx") || !strings.Contains(text, "201 bytes") || !strings.Contains(text, "at most 200") {
			t.Errorf("a long label: %s", text)
		}
		_, err = rlock.Dial(context.Background(), s.Option(), rlock.Config{Label: "a\xff"})
		locktest.Is(t, "a label that is no text", err, rlock.ErrConfig)
	})
}
