package torture

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"relock/torture/check"
	"relock/torture/oracle"
	"relock/torture/proxy"
	"relock/torture/worker"
)

// maxWorkers is more than a round has.
const maxWorkers = 1000

// process is a worker that is started again after it was killed.
type process struct {
	number  int
	job     worker.Job // of its first life
	dir     string
	network *proxy.Proxy
	failed  func(format string, args ...any)

	mu    sync.Mutex
	life  *life
	lives []*life
}

// life is one life of a worker: a process of the system.
type life struct {
	job    worker.Job
	cmd    *exec.Cmd
	in     io.WriteCloser
	said   chan string   // lines of its output; closed when it has ended
	gone   chan struct{} // closed when it was waited for
	err    error         // how it ended
	killed bool
}

func newProcess(number int, job worker.Job, dir string, failed func(string, ...any)) (*process, error) {
	n, err := proxy.Listen()
	if err != nil {
		return nil, err
	}
	job.Proxy = n.Addr()
	return &process{number: number, job: job, dir: dir, network: n, failed: failed}, nil
}

// Network is the network between this worker and Redis.
func (p *process) Network() *proxy.Proxy { return p.network }

// Lease is that of the worker's session.
func (p *process) Lease() time.Duration { return p.job.Lease }

// Sessions is how many the worker has.
func (p *process) Sessions() int { return max(p.job.Sessions, 1) }

// Respawn starts the worker, for the first time or again.
func (p *process) Respawn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.job
	j.Session = fmt.Sprintf("w%dg%d", p.number, len(p.lives))
	j.Seed += uint64(len(p.lives)) * 1000
	j.Life = len(p.lives)*maxWorkers + p.number
	j.Log = filepath.Join(p.dir, j.Session+".log")
	l, err := start(j)
	if err != nil {
		p.failed("start %s: %v", j.Session, err)
		return
	}
	p.life = l
	p.lives = append(p.lives, l)
}

func start(j worker.Job) (*life, error) {
	cmd, err := j.Command(context.Background())
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l := &life{job: j, cmd: cmd, in: in, said: make(chan string, 16), gone: make(chan struct{})}
	go func() {
		for sc := bufio.NewScanner(out); sc.Scan(); {
			l.said <- sc.Text()
		}
		close(l.said)
		l.err = cmd.Wait()
		close(l.gone)
	}()
	return l, nil
}

// Kill ends the worker with SIGKILL.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life.killed = true
	_ = p.life.cmd.Process.Kill()
	<-p.life.gone
}

// Stop stops the worker until Continue.
func (p *process) Stop() { p.signal(syscall.SIGSTOP) }

// Continue lets a stopped worker go on.
func (p *process) Continue() { p.signal(syscall.SIGCONT) }

func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.life.cmd.Process.Signal(sig)
}

// Inside reports whether the worker is in one of the sections that last long, by what it has
// written down.
func (p *process) Inside() bool {
	p.mu.Lock()
	log := p.life.job.Log
	p.mu.Unlock()
	entries, err := oracle.Load(log)
	return err == nil && slices.ContainsFunc(entries, func(e oracle.Entry) bool {
		return e.Kind == oracle.Section && p.job.Locks[e.Lock].Long && e.Outcome == oracle.Held && e.In != 0 && e.End == 0
	})
}

// tell sends a word to the worker.
func (p *process) tell(word string) { _, _ = io.WriteString(p.life.in, word+"\n") }

// await waits until the worker says something that begins with word.
func (p *process) await(word string, within time.Duration) (string, bool) {
	timeout := time.After(within)
	for {
		select {
		case line, ok := <-p.life.said:
			if !ok {
				<-p.life.gone
				p.failed("worker %s ended when %q was awaited: %v", p.life.job.Session, word, p.life.err)
				return "", false
			}
			if strings.HasPrefix(line, word) {
				return line, true
			}
		case <-timeout:
			p.failed("worker %s did not say %q within %v", p.life.job.Session, word, within)
			return "", false
		}
	}
}

// end ends what is left of the worker, however it is.
func (p *process) end() {
	if p.life != nil {
		_ = p.life.cmd.Process.Kill()
		<-p.life.gone
	}
	p.network.Close()
}

// read returns what all lives of the worker have written down.
func (p *process) read() (all []check.Process, err error) {
	for _, l := range p.lives {
		entries, err := oracle.Load(l.job.Log)
		if os.IsNotExist(err) {
			continue // killed before it began
		}
		if err != nil {
			return nil, err
		}
		all = append(all, check.Process{
			Worker: p.number, Session: l.job.Session, Lease: l.job.Lease, Killed: l.killed, Entries: entries,
		})
	}
	return all, nil
}
