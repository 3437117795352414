package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// A rawConn is a connection without a client: one is made and gone in a fraction of the time that a
// client takes.
type rawConn struct {
	conn net.Conn
	r    *bufio.Reader
}

// newRaw makes one of a connection, which it ends [adminTimeout] from now.
func newRaw(conn net.Conn) *rawConn {
	_ = conn.SetDeadline(time.Now().Add(adminTimeout))
	return &rawConn{conn, bufio.NewReader(conn)}
}

// command returns a command as it is sent.
func command(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}

// do sends commands that stand in one string, and returns the answers as they came.
func (c *rawConn) do(commands string, number int) (answers []byte, err error) {
	// The server may want its answers read before it takes more.
	sent := make(chan error, 1)
	go func() {
		_, err := io.WriteString(c.conn, commands)
		sent <- err
	}()
	for range number {
		if answers, err = c.answer(answers); err != nil {
			_ = c.conn.Close()
			break
		}
	}
	if failed := <-sent; err == nil {
		err = failed
	}
	return answers, err
}

// answer reads one answer and appends it.
func (c *rawConn) answer(to []byte) ([]byte, error) {
	line, err := c.r.ReadBytes('\n')
	if err != nil {
		return to, err
	}
	to = append(to, line...)
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$':
		if n >= 0 {
			text := make([]byte, n+2)
			if _, err := io.ReadFull(c.r, text); err != nil {
				return to, err
			}
			to = append(to, text...)
		}
	case '*':
		for range n {
			if to, err = c.answer(to); err != nil {
				return to, err
			}
		}
	}
	return to, nil
}

// leave ends the connection and returns when the server has ended it too.
func (c *rawConn) leave() error {
	defer c.conn.Close()
	if _, err := io.WriteString(c.conn, command("QUIT")); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, c.r)
	return err
}
