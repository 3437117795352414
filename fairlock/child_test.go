package fairlock_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// This very test program, started with these in its environment, is another process that
// waits for a lock, and holds it when it has it.
const (
	childAddr = "RELOCK_FAIRLOCK_CHILD_ADDR"
	childName = "RELOCK_FAIRLOCK_CHILD_NAME"
)

// runChild is that process. It ends with its parent at the latest.
func runChild(addr, name string) {
	ses, err := rlock.Dial(context.Background(), rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}, short(new(redistest.Server)))
	if err != nil {
		os.Exit(3)
	}
	go func() { _, _, _ = fairlock.New(ses, name).Lock(context.Background()) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startChild starts one and returns what kills it with SIGKILL.
func startChild(t *testing.T, s *redistest.Server, name string) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childAddr+"="+s.Addr, childName+"="+name)
	_, err := cmd.StdinPipe() // open until this process ends
	must(t, err)
	must(t, cmd.Start())
	dead := false
	kill = func() {
		if !dead {
			dead = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	return kill
}
