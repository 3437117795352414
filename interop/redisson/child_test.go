package redisson

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// childJob is the variable with the job that makes this test binary another Go process,
// which takes a lock and holds it until it is killed.
const childJob = "RELOCK_INTEROP_CHILD"

type job struct {
	Addrs      []string
	Single     bool
	Prefix     string
	RESP2      bool
	Kind, Name string
}

// child does the job. It does not return.
func child(text string) {
	var j job
	err := json.Unmarshal([]byte(text), &j)
	if err == nil {
		err = j.take(context.Background())
	}
	fmt.Println("held:", err)
	// The process that is to kill this one may die first.
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func (j job) take(ctx context.Context) error {
	s, err := rlock.Dial(ctx, rueidis.ClientOption{InitAddress: j.Addrs, ForceSingleClient: j.Single, AlwaysRESP2: j.RESP2}, rlock.Config{Lease: short, Prefix: j.Prefix})
	if err != nil {
		return err
	}
	switch j.Kind {
	case "read":
		_, _, err = rwlock.New(s, j.Name).RLock(ctx)
	case "permits":
		_, _, err = semaphore.New(s, j.Name, 2).Acquire(ctx, 2)
	default:
		for _, k := range exclusives {
			if k.java == j.Kind {
				_, _, err = k.of(s, j.Name).Lock(ctx)
				return err
			}
		}
		err = fmt.Errorf("no kind %q", j.Kind)
	}
	return err
}

// holdInChild starts a process that holds a lock of that kind, for short at a time. It is
// killed by the function returned, or when the test ends.
func holdInChild(t testing.TB, e *env, kind, name string) (kill func()) {
	t.Helper()
	addrs := e.addrs
	if e.single != nil {
		addrs = []string{e.single.Addr}
	}
	text, err := json.Marshal(job{addrs, e.cluster == nil, e.prefix, e.resp2, kind, name})
	locktest.Must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childJob+"="+string(text))
	_, err = cmd.StdinPipe()
	locktest.Must(t, err)
	out, err := cmd.StdoutPipe()
	locktest.Must(t, err)
	locktest.Must(t, cmd.Start())
	dead := false
	kill = func() {
		if !dead {
			dead = true
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "held: <nil>") {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return kill
}
