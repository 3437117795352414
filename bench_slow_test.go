package relock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// slowEnv has the test binary be the slow process: "kind address".
const slowEnv = "RELOCK_BENCH_SLOW"

// BenchmarkSlowProcess is 15 sessions and a process that all want one lock all the time, while that process runs
// for 10 of every 100 ms, as with a small CPU quota. x-free is the rate of the 15 as a part of what they make
// while the process runs freely, in the same run; slow/s is what the slow one gets.
func BenchmarkSlowProcess(b *testing.B) {
	for _, kind := range sessionsKinds {
		b.Run(kind.name, func(b *testing.B) {
			s := redistest.Real(b)
			var lockers []locker
			for _, ses := range openMany(b, 15, s.Option()) {
				lockers = append(lockers, kind.open(ses, "x"))
			}
			slow := startSlow(b, kind.name, s.Addr)
			newCrowd(s, kind.at, lockers, 0).run(b, aloneEachSide) // nothing is loaded for the first time from here on
			free, beside := newCrowd(s, kind.at, lockers, 0), newCrowd(s, kind.at, lockers, 0)
			got := 0
			for b.Loop() {
				free.run(b, usualWindow)
				end := slow.throttle()
				before := slow.count(b)
				beside.run(b, usualWindow)
				end()
				got += slow.count(b) - before
			}
			beside.report(b)
			b.ReportMetric(beside.result.Rate()/free.result.Rate(), "x-free")
			b.ReportMetric(float64(got)/beside.result.Elapsed.Seconds(), "slow/s")
		})
	}
}

// slowProcess is the process that is slow.
type slowProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startSlow(b *testing.B, kind, addr string) *slowProcess {
	b.Helper()
	p := &slowProcess{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), slowEnv+"="+kind+" "+addr)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	p.count(b) // it runs
	return p
}

// throttle has the process run for 10 of every 100 ms until end is called.
func (p *slowProcess) throttle() (end func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			for _, step := range []struct {
				signal syscall.Signal
				d      time.Duration
			}{{syscall.SIGSTOP, 90 * time.Millisecond}, {syscall.SIGCONT, 10 * time.Millisecond}} {
				_ = p.cmd.Process.Signal(step.signal)
				select {
				case <-time.After(step.d):
				case <-stop:
					_ = p.cmd.Process.Signal(syscall.SIGCONT)
					return
				}
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// count asks the process how often it has had the lock.
func (p *slowProcess) count(b *testing.B) int {
	b.Helper()
	if _, err := fmt.Fprintln(p.in); err != nil {
		b.Fatal(err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// beSlow is the slow process: it locks and unlocks, and tells how often when it is asked. It does not return if
// the environment says that this process is one.
func beSlow() {
	kind, addr, is := strings.Cut(os.Getenv(slowEnv), " ")
	if !is {
		return
	}
	ctx := context.Background()
	ses, err := rlock.Dial(ctx, benchkit.Option(addr), rlock.Config{})
	if err != nil {
		panic(err)
	}
	asked := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			asked <- struct{}{}
		}
		os.Exit(0)
	}()
	for _, k := range sessionsKinds {
		if k.name != kind {
			continue
		}
		lock, n := k.open(ses, "x"), 0
		for {
			select {
			case <-asked:
				fmt.Println(n)
			default:
			}
			release, err := lock(ctx)
			if err == nil {
				n++
				err = release()
			}
			if err != nil {
				panic(err)
			}
		}
	}
}
