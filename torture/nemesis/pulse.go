package nemesis

import (
	"context"
	"net"
	"time"

	"relock/torture/oracle"
)

// Pulse notes when a server does not answer, for whatever reason: on a busy machine Redis may
// not run for a while without anybody having stopped it. It returns when ctx ends.
func Pulse(ctx context.Context, addr string, j *Journal) {
	const (
		every = 20 * time.Millisecond
		late  = 100 * time.Millisecond
	)
	var c net.Conn
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	for last := oracle.Now(); pause(ctx, every); {
		if c == nil {
			c, _ = net.DialTimeout("tcp", addr, time.Second)
		}
		if c == nil || !answers(c) {
			if c != nil {
				_ = c.Close()
			}
			c = nil
			continue
		}
		now := oracle.Now()
		if now-last > every+late {
			j.Past(Fault{Name: "a server did not answer in time", Worker: All, Busy: true, Servers: []string{addr}, Begin: last, End: now})
		}
		last = now
	}
}

// answers reports whether the server answers a PING within the longest time that it is stopped.
func answers(c net.Conn) bool {
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, err := c.Read(make([]byte, 256))
	return err == nil && n > 0
}
