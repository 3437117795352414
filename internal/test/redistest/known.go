package redistest

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"relock/internal/script"
)

// known are the commands that load the scripts in the folders given to [Main], and their number. They are
// written before the first test and read by all.
var known struct {
	commands string
	number   int
}

// know has servers that start from now on know the scripts in these folders.
func know(folders []string) {
	var b strings.Builder
	for _, folder := range folders {
		files := os.DirFS(folder)
		names, err := fs.Glob(files, "*.lua")
		if err != nil || len(names) == 0 {
			panic(fmt.Sprintf("redistest: no scripts in %s: %v", folder, err))
		}
		for _, name := range names {
			src := script.Load(files, name).Source()
			fmt.Fprintf(&b, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$%d\r\n%s\r\n", len(src), src)
			known.number++
		}
	}
	known.commands = b.String()
}

// warm loads the known scripts. A server that refuses them, as one with a password does, goes
// without.
func (s *Server) warm() error {
	if known.number == 0 {
		return nil
	}
	dial := func() (net.Conn, error) { return net.DialTimeout("tcp", s.Addr, adminTimeout) }
	if s.inBubble {
		dial = s.Mini.Dial
	}
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(adminTimeout))
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write([]byte(known.commands))
		sent <- err
	}()
	r := bufio.NewReader(c)
	for range known.number {
		line, err := r.ReadString('\n')
		if err == nil && line[0] == '$' { // the SHA-1 is in a line of its own
			_, err = r.ReadString('\n')
		}
		if err != nil {
			return err
		}
	}
	return <-sent
}
