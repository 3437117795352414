package main_test

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// A terminal is a pseudo terminal in which a command runs.
type terminal struct {
	tb    testing.TB
	cmd   *exec.Cmd
	file  *os.File
	ended chan error

	mu   sync.Mutex
	seen strings.Builder
	from int // until looks behind here
}

func watchTerminal(tb testing.TB, cmd *exec.Cmd, f *os.File) *terminal {
	t := &terminal{tb: tb, cmd: cmd, file: f, ended: make(chan error, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			t.mu.Lock()
			t.seen.Write(buf[:n])
			t.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	go func() { t.ended <- cmd.Wait() }()
	tb.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
		}
		_ = f.Close() // which hangs up on what is left in the terminal
		select {
		case <-read:
		case <-time.After(patience):
			tb.Error("the terminal does not close")
		}
	})
	return t
}

// text is all that was printed.
func (t *terminal) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen.String()
}

// until waits for a text behind what was waited for before.
func (t *terminal) until(want string) {
	t.tb.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		if i := strings.Index(t.text()[t.from:], want); i >= 0 {
			t.from += i + len(want)
			return
		}
		if time.Now().After(end) {
			t.tb.Fatalf("no %q in %q", want, t.text()[t.from:])
		}
	}
}

func (t *terminal) write(s string) {
	t.tb.Helper()
	_, err := t.file.WriteString(s)
	must(t.tb, err)
}

// wait returns the exit code.
func (t *terminal) wait() int {
	t.tb.Helper()
	select {
	case err := <-t.ended:
		return codeOf(t.tb, err)
	case <-time.After(patience):
		t.tb.Fatalf("%s does not end; it printed %q", t.cmd, t.text())
	}
	return -1
}
