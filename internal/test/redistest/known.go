package redistest

import (
	"crypto/sha1"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"relock/internal/script"
)

// known are the commands that load the scripts in the folders given to [Main], their number, and
// the command that asks whether a server has them. They are written before the first test and
// read by all.
var known struct {
	commands string
	number   int
	exist    string
}

// know has servers that start from now on know the scripts in these folders.
func know(folders []string) {
	var b strings.Builder
	exist := []string{"SCRIPT", "EXISTS"}
	for _, folder := range folders {
		files := os.DirFS(folder)
		names, err := fs.Glob(files, "*.lua")
		if err != nil || len(names) == 0 {
			panic(fmt.Sprintf("redistest: no scripts in %s: %v", folder, err))
		}
		for _, name := range names {
			src := script.Load(files, name).Source()
			b.WriteString(command("SCRIPT", "LOAD", src))
			exist = append(exist, fmt.Sprintf("%x", sha1.Sum([]byte(src))))
			known.number++
		}
	}
	known.commands, known.exist = b.String(), command(exist...)
}

// warm loads the known scripts. A server that refuses them, as one with a password does, goes
// without.
func (s *Server) warm() error {
	if known.number == 0 {
		return nil
	}
	dial := func() (net.Conn, error) { return net.DialTimeout("tcp", s.Addr, adminTimeout) }
	if s.bubble != nil {
		dial = s.bubble.dial
	}
	conn, err := dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = newRaw(conn).do(known.commands, known.number)
	return err
}
