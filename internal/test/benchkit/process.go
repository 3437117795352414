package benchkit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// childJob is the variable with the job that makes a program one of several processes that
// compete for a lock.
const childJob = "RELOCK_BENCH_CHILD"

// Job is what several processes do together, a session each.
type Job struct {
	Kind      string // by its name, since a process cannot be handed a function
	Addr      string
	Lock      string // the lock's name
	Processes int
	Workers   int // in each process
	Window    time.Duration
	Work      time.Duration
	GatePath  string // of a file that the processes share
}

// Child makes this process one of a [Job] if it was started as such, and does not return
// then. Every program that calls RunProcesses calls it first.
func Child(kinds []Kind) {
	text := os.Getenv(childJob)
	if text == "" {
		return
	}
	var job Job
	err := json.Unmarshal([]byte(text), &job)
	if err == nil {
		err = job.serve(kinds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchkit:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

const (
	ready = "ready"
	start = "go"
)

// serve is the child's side: say ready, wait for the word, measure, report.
func (j Job) serve(kinds []Kind) error {
	kind, ok := Find(kinds, j.Kind)
	if !ok {
		return fmt.Errorf("no kind %q", j.Kind)
	}
	ctx := context.Background()
	gate, err := OpenGate(j.GatePath)
	if err != nil {
		return err
	}
	defer gate.Close()
	h, err := kind.Open(ctx, Env{Addr: j.Addr})
	if err != nil {
		return err
	}
	defer h.Close()
	in := bufio.NewReader(os.Stdin)
	fmt.Println(ready)
	if line, err := in.ReadString('\n'); err != nil || strings.TrimSpace(line) != start {
		return fmt.Errorf("waiting for the word: %q, %w", line, err)
	}
	go func() {
		// The parent is gone: nobody wants to know any more.
		_, _ = io.Copy(io.Discard, in)
		os.Exit(4)
	}()
	res, err := Run(ctx, Plan{
		Workers: j.Workers, Window: j.Window, Work: j.Work, Gate: gate,
		Reads: kind.Reads, Readers: kind.Readers,
		Worker: func(ctx context.Context, _ int) (Cycle, error) { return h.Worker(ctx, j.Lock) },
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(res)
}

// process is one child.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// RunProcesses starts copies of this program, lets them begin together, and merges what they
// report. begin and end, which may be nil, are called before the window begins and when it is
// over. Until begin has returned no process locks anything: what it counts would lack the commands of
// rounds that are counted, on a busy machine most of them. RunProcesses blocks until all processes
// have ended. Error: the first of any of them.
func RunProcesses(job Job, begin, end func() error) (Result, error) {
	gate, err := OpenGate(job.GatePath)
	if err != nil {
		return Result{}, err
	}
	defer gate.Close()
	var all []*process
	defer func() {
		for _, p := range all {
			// A process that is through has gone; after an error none is to stay.
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	}()
	for range job.Processes {
		p, err := job.spawn()
		if err != nil {
			return Result{}, err
		}
		all = append(all, p)
	}
	for _, p := range all {
		if line, err := p.out.ReadString('\n'); err != nil || strings.TrimSpace(line) != ready {
			return Result{}, fmt.Errorf("benchkit: a process says %q: %w", line, err)
		}
	}
	if begin != nil {
		if err := begin(); err != nil {
			return Result{}, err
		}
	}
	for _, p := range all {
		if _, err := fmt.Fprintln(p.in, start); err != nil {
			return Result{}, fmt.Errorf("benchkit: %w", err)
		}
	}
	time.Sleep(job.Window)
	if end != nil {
		if err := end(); err != nil {
			return Result{}, err
		}
	}
	var res Result
	for _, p := range all {
		var one Result
		if err := json.NewDecoder(p.out).Decode(&one); err != nil {
			return Result{}, fmt.Errorf("benchkit: a process reports nothing: %w", err)
		}
		res.Merge(one)
	}
	res.Violations = gate.Violations()
	return res, nil
}

func (j Job) spawn() (*process, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("benchkit: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("benchkit: %w", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childJob+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, fmt.Errorf("benchkit: %w", err)
	}
	return &process{cmd, in, bufio.NewReader(out)}, nil
}
