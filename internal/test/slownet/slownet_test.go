package slownet_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"relock/internal/test/slownet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// through returns both ends of a connection through a proxy.
func through(t *testing.T, roundTrip time.Duration) (client, server *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := slownet.New(t, ln.Addr().String(), roundTrip)
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	s, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func write(t *testing.T, to net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, from net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

// A round trip takes its time, half in each direction.
func TestRoundTripTakesItsTime(t *testing.T) {
	const trip = 40 * time.Millisecond
	client, server := through(t, trip)
	began := time.Now()
	write(t, client, "ping")
	read(t, server, "ping")
	there := time.Now()
	write(t, server, "pong")
	read(t, client, "pong")
	if a, b := there.Sub(began), time.Since(there); a < trip/2 || b < trip/2 {
		t.Errorf("there %v, back %v; each takes %v at least", a, b, trip/2)
	}
}

// megabytes are sent and arrive: far more than the proxy reads at a time.
func megabytes(t *testing.T, from, to *net.TCPConn) {
	t.Helper()
	sent := make([]byte, 3<<20)
	for i := range sent {
		sent[i] = byte(i * (i >> 8))
	}
	go func() {
		_, _ = from.Write(sent)
		_ = from.CloseWrite()
	}()
	if got, err := io.ReadAll(to); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

// What is sent one after the other is on its way at the same time.
func TestManyAreOnTheirWay(t *testing.T) {
	const trip = 200 * time.Millisecond
	client, server := through(t, trip)
	began := time.Now()
	megabytes(t, client, server)
	// One by one the 48 parcels would take 4.8 s.
	if took := time.Since(began); took < trip/2 || took > 12*trip {
		t.Errorf("all took %v; one takes %v", took, trip/2)
	}
}

// The end of a stream arrives behind its bytes, and the other direction goes on.
func TestEndArrives(t *testing.T) {
	client, server := through(t, time.Millisecond)
	megabytes(t, client, server)
	write(t, server, "thanks")
	read(t, client, "thanks")
	server.Close()
	if n, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("%d bytes, %v behind the end", n, err)
	}
}

// A server that cannot be reached ends the connection.
func TestNoServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	c, err := net.Dial("tcp", slownet.New(t, ln.Addr().String(), time.Millisecond).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes of nobody", n)
	}
}
