package main_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"relock/internal/test/redistest"
)

// A signal ends a command also while it stands in a write, to a pipe that is full and that nobody reads.
func TestASignalEndsACommandThatWrites(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	args := []string{"HSET", "x", "mode", "read"}
	for i := range 3000 {
		args = append(args, "reader-"+strconv.Itoa(i), "1")
	}
	must(t, s.Do(t, args...).Error())
	must(t, s.Do(t, "PEXPIRE", "x", "60000").Error())
	reader, writer, err := os.Pipe()
	must(t, err)
	defer reader.Close()
	defer writer.Close()
	full, err := unix.FcntlInt(reader.Fd(), unix.F_GETPIPE_SZ, 0)
	must(t, err)
	cmd := newCLI(t, s).command("show", "x")
	cmd.Stdout = writer
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r := &running{tb: t, cmd: cmd, ended: ended}
	defer func() { _ = cmd.Process.Kill() }() // if it has not ended
	eventually(t, "a full pipe", func() bool {
		n, err := unix.IoctlGetInt(int(reader.Fd()), unix.TIOCINQ)
		must(t, err)
		return n > full/2 // it prints, and there is more than fits in
	})
	r.signal(syscall.SIGTERM)
	if code := r.wait(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
}
