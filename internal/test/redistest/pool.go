package redistest

import (
	"bytes"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// A spare is a real server that outlives the test it was started for: the next test has it then,
// for to start one takes longer than most tests do. It has been started without arguments.
type spare struct {
	addr  string
	dir   string
	proc  *process
	start func() (*process, error)
	asNew []byte // what looks returned when the server was new
}

// spares are the servers that wait for a test. dir is where they live; without it every server
// ends with its test.
var spares struct {
	mu   sync.Mutex
	dir  string
	idle []*spare
}

// pooled runs the tests with servers that outlive them.
type pooled struct{ *testing.M }

func (p pooled) Run() int {
	// Without a directory, servers end with their tests.
	spares.dir, _ = os.MkdirTemp("", "redistest")
	defer endSpares()
	return p.M.Run()
}

// endSpares ends the servers that wait for a test.
func endSpares() {
	spares.mu.Lock()
	defer spares.mu.Unlock()
	for _, sp := range spares.idle {
		sp.proc.kill()
	}
	_ = os.RemoveAll(spares.dir)
	spares.dir, spares.idle = "", nil
}

// takeSpare returns a server that waits for a test, and nil if none does.
func takeSpare() *spare {
	spares.mu.Lock()
	defer spares.mu.Unlock()
	n := len(spares.idle)
	if n == 0 {
		return nil
	}
	sp := spares.idle[n-1]
	spares.idle = spares.idle[:n-1]
	return sp
}

// spareDir makes a directory for a server that may outlive its test; "" says that it may not.
func spareDir() string {
	spares.mu.Lock()
	defer spares.mu.Unlock()
	if spares.dir == "" {
		return ""
	}
	dir, _ := os.MkdirTemp(spares.dir, "")
	return dir
}

// newSpare returns a server that has just been started in dir as one for further tests, or nil.
func newSpare(s *Server, dir string) *spare {
	c, err := dialRaw(s.Addr)
	if err != nil {
		return nil
	}
	defer c.conn.Close()
	asNew, err := c.looks()
	if err != nil || c.leave() != nil {
		return nil
	}
	return &spare{addr: s.Addr, dir: dir, proc: s.proc, start: s.start, asNew: asNew}
}

// giveBack has the server wait for the next test. It reports false for a server that is not as it
// was when it was new, and cannot be made so.
func (sp *spare) giveBack() bool {
	if !sp.renew() {
		return false
	}
	spares.mu.Lock()
	defer spares.mu.Unlock()
	spares.idle = append(spares.idle, sp)
	return true
}

// leaveTime is how long the clients of a test may take to leave. They have been closed when the
// test gives the server back. One that stays is still in use, and might do anything to the next
// test.
const leaveTime = time.Second

// renew makes the server as it was when it was new.
func (sp *spare) renew() bool {
	if files, err := os.ReadDir(sp.dir); err != nil || len(files) != 1 {
		return false // there is more than the log: it would come back with data
	}
	c, err := dialRaw(sp.addr)
	if err != nil {
		return false
	}
	defer c.conn.Close()
	if !poll(leaveTime, func() bool {
		list, err := c.do(command("CLIENT", "LIST"), 1)
		return err == nil && bytes.Count(list, []byte(" addr=")) == 1
	}) {
		return false
	}
	tidy := command("CLIENT", "UNPAUSE") + command("FLUSHALL") + command("ACL", "LOG", "RESET") + command("SLOWLOG", "RESET")
	if _, err := c.do(tidy, 4); err != nil {
		return false
	}
	looks, err := c.looks()
	if err == nil && !bytes.Equal(looks, sp.asNew) {
		// It may know other scripts.
		if _, err = c.do(command("SCRIPT", "FLUSH")+known.commands, 1+known.number); err == nil {
			looks, err = c.looks()
		}
	}
	if err != nil || !bytes.Equal(looks, sp.asNew) {
		return false
	}
	return c.leave() == nil
}

// looks returns what tests change of a server, as it stands in the answers: its configuration,
// users, scripts and keys, and how it replicates. It has the server count commands from zero.
func (c *rawConn) looks() ([]byte, error) {
	questions := command("CONFIG", "GET", "*") + command("ACL", "LIST") + known.exist + command("ROLE") + command("DBSIZE")
	looks, err := c.do(questions, 5)
	if err != nil {
		return nil, err
	}
	memory, err := c.do(command("INFO", "memory")+command("CONFIG", "RESETSTAT"), 2)
	if _, scripts, ok := bytes.Cut(memory, []byte("number_of_cached_scripts:")); ok {
		number, _, _ := bytes.Cut(scripts, []byte("\r"))
		looks = append(looks, number...)
	}
	return looks, err
}

func dialRaw(addr string) (*rawConn, error) {
	conn, err := net.DialTimeout("tcp", addr, adminTimeout)
	if err != nil {
		return nil, err
	}
	return newRaw(conn), nil
}
