package redistest

import (
	"crypto/tls"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TLS is how a server speaks TLS.
type TLS struct {
	Authority *Authority
	Hosts     []string // that its certificate is for; empty: 127.0.0.1 and localhost
	Clients   bool     // it asks clients for a certificate
	Version   uint16   // the only one; 0: each that is safe
}

func (how TLS) certificate(tb testing.TB) tls.Certificate {
	hosts := how.Hosts
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1", "localhost"}
	}
	return how.Authority.Certificate(tb, hosts...)
}

// ServeTLS has the server speak TLS too, at the address that is returned, until it is restarted, or told to
// do so in another way, or the test ends. A real server does so itself; without TLS in the program the test is skipped.
func (s *Server) ServeTLS(tb testing.TB, how TLS) (addr string) {
	tb.Helper()
	if s.IsMini() {
		return FrontTLS(tb, s.Addr, how)
	}
	set := func(name, value string) error { return s.Do(tb, "CONFIG", "SET", name, value).Error() }
	if !hasTLS(binary(tb)) {
		tb.Skip("SKIPPED: the server program was built without TLS")
	}
	was, _ := s.Do(tb, "CONFIG", "GET", "tls-*").AsStrMap()
	settings := how.settings(tb, tb.TempDir())
	tb.Cleanup(func() { // it may serve other tests
		_ = set("tls-port", "0")
		for _, c := range settings {
			_ = set(c[0], was[c[0]])
		}
	})
	for _, c := range settings {
		if err := set(c[0], c[1]); err != nil {
			tb.Fatalf("%s: %v", c[0], err)
		}
	}
	var port int
	var err error
	for range startTries {
		if port, err = freePort(); err == nil {
			err = set("tls-port", strconv.Itoa(port))
		}
		if err == nil {
			break
		}
	}
	if err == nil { // now it reads all of that
		err = set("tls-protocols", how.versions())
	}
	if err != nil {
		tb.Fatalf("speak TLS: %v", err)
	}
	return address(port)
}

// hasTLS reports whether a server program was built with TLS: then it asks for a certificate before it listens
// anywhere. Valkey without TLS takes the settings, and crashes later.
func hasTLS(path string) bool {
	said, _ := exec.Command(path, "--port", "0", "--tls-port", "1", "--save", "").CombinedOutput()
	return strings.Contains(string(said), "No tls-cert-file configured")
}

// versions are those that a redis-server is to speak.
func (how TLS) versions() string {
	if how.Version == 0 {
		return "TLSv1.2 TLSv1.3"
	}
	return strings.ReplaceAll(tls.VersionName(how.Version), "TLS ", "TLSv")
}

// settings are those of a redis-server before it speaks TLS, whose files are in dir.
func (how TLS) settings(tb testing.TB, dir string) [][2]string {
	cert, key := pems(tb, dir, how.certificate(tb))
	ask := "no"
	if how.Clients {
		ask = "yes"
	}
	return [][2]string{
		{"tls-port", "0"},
		{"tls-protocols", ""},
		{"tls-cert-file", cert},
		{"tls-key-file", key},
		{"tls-ca-cert-file", how.Authority.file(tb, dir)},
		{"tls-auth-clients", ask},
	}
}

// FrontTLS stands in front of what listens at target and does not speak TLS, as a proxy of a managed
// service does. It returns its address, and ends with the test.
func FrontTLS(tb testing.TB, target string, how TLS) (addr string) {
	tb.Helper()
	cfg := &tls.Config{Certificates: []tls.Certificate{how.certificate(tb)}, MinVersion: how.Version, MaxVersion: how.Version}
	if how.Clients {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, how.Authority.pool()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	f := &front{ln: ln, target: target, cfg: cfg, open: map[net.Conn]struct{}{}}
	f.wg.Go(f.accept)
	tb.Cleanup(f.close)
	return ln.Addr().String()
}

// A front is that of FrontTLS.
type front struct {
	ln     net.Listener
	target string
	cfg    *tls.Config
	wg     sync.WaitGroup

	mu     sync.Mutex // guards what follows
	open   map[net.Conn]struct{}
	closed bool
}

func (f *front) accept() {
	for {
		client, err := f.ln.Accept()
		if err != nil {
			return // closed
		}
		f.wg.Go(func() { f.serve(client) })
	}
}

// add has close end conn; it reports false if that has been called.
func (f *front) add(conn net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[conn] = struct{}{}
	return !f.closed
}

// end closes conn.
func (f *front) end(conn net.Conn) {
	f.mu.Lock()
	delete(f.open, conn)
	f.mu.Unlock()
	_ = conn.Close()
}

func (f *front) close() {
	_ = f.ln.Close()
	f.mu.Lock()
	f.closed = true
	for conn := range f.open {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.wg.Wait()
}

// serve passes on what comes over a connection, both ways, until one side ends.
func (f *front) serve(socket net.Conn) {
	defer f.end(socket)
	if !f.add(socket) {
		return
	}
	client := tls.Server(socket, f.cfg)
	if client.Handshake() != nil {
		return
	}
	server, err := net.DialTimeout("tcp", f.target, adminTimeout)
	if err != nil {
		return
	}
	defer f.end(server)
	if !f.add(server) {
		return
	}
	f.wg.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.CloseWrite()
		f.end(socket)
	})
	_, _ = io.Copy(server, client)
}
