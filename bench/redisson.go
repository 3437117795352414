package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/javapeer"
)

// redisson is the real Redisson, in Java processes of its own. Its clients also send a DEL for
// each release, which INFO commandstats cannot tell from that of the release's script: it is
// added to what is counted.
var redisson = benchkit.Kind{Name: "Redisson", Sends: []string{"evalsha", "eval", "subscribe", "unsubscribe"}}

const (
	javaProcesses = 4 // at most; that many are started
	javaProgram   = "../interop/redisson/peer"
	javaStart     = time.Minute      // for a Java machine to come up, on a busy host
	javaDrain     = 30 * time.Second // for those that wait when a window ends
)

// javaWarm is for how long each of three scenes warms the Java processes up: the first thousands of
// their rounds are slow. Tests have less of it.
var javaWarm = 4 * time.Second

// jvms are the Java processes of one measurement; the first one is also that of one process.
type jvms struct{ all []*jvm }

// startJVMs starts as many as scenes need, on the Redis at addr, and warms them up. They
// end with the host.
func startJVMs(h *host, addr string) (*jvms, error) {
	path, err := javapeer.Build(javaProgram)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLeftOut, err)
	}
	j := &jvms{}
	for range javaProcesses {
		one, err := startJVM(h, path, addr)
		if err != nil {
			return nil, err
		}
		j.all = append(j.all, one)
	}
	for _, warm := range []benchkit.Scene{benchkit.Same64, benchkit.Four16, benchkit.Alone} {
		if _, err := j.run(warm, javaWarm, nil, nil); err != nil {
			return nil, err
		}
	}
	return j, nil
}

func (j *jvms) measure(ctx context.Context, base *benchkit.Base, sc benchkit.Scene, window time.Duration) (benchkit.Cell, error) {
	if _, err := j.run(sc, window/2, nil, nil); err != nil {
		return benchkit.Cell{}, err
	}
	cell, err := base.MeasureBy(ctx, redisson, sc, window, func(begin, end func() error) (benchkit.Result, error) {
		return j.run(sc, window, begin, end)
	})
	cell.Commands++ // the DEL, see redisson; Ran has it
	return cell, err
}

// run puts the processes into the scene. begin and end, which may be nil, are called at the ends
// of the window.
func (j *jvms) run(sc benchkit.Scene, window time.Duration, begin, end func() error) (res benchkit.Result, err error) {
	in := j.all[:max(1, sc.Processes)]
	for _, one := range in {
		if err := one.open(max(1, sc.Sessions)); err != nil {
			return res, err
		}
	}
	dir, err := os.MkdirTemp("", "relock-bench-")
	if err != nil {
		return res, err
	}
	defer os.RemoveAll(dir)
	own, path := "1", ""
	if !sc.OwnKeys {
		own, path = "0", filepath.Join(dir, "gate")
		gate, err := benchkit.OpenGate(path)
		if err != nil {
			return res, err
		}
		defer gate.Close()
		defer func() { res.Violations = gate.Violations() }()
	}
	for _, one := range in {
		err = errors.Join(err, one.send("bench", "lock", "bench", "bench", strconv.Itoa(sc.Workers),
			strconv.FormatInt(window.Milliseconds(), 10), strconv.FormatInt(sc.Work.Microseconds(), 10), own, path))
	}
	if begin != nil && err == nil {
		err = begin()
	}
	time.Sleep(window)
	if end != nil && err == nil {
		err = end()
	}
	for _, one := range in {
		a, bad := one.answer(javaDrain)
		if bad == nil {
			bad = addRounds(&res, a.value, window)
		}
		err = errors.Join(err, bad)
	}
	return res, err
}

// addRounds takes in the report of Bench.java.
func addRounds(res *benchkit.Result, report string, window time.Duration) error {
	one := benchkit.Result{Elapsed: window}
	for thread := range strings.SplitSeq(report, ";") {
		rounds, waits, _ := strings.Cut(thread, ":")
		n, err := strconv.Atoi(rounds)
		if err != nil {
			return fmt.Errorf("redisson: the report of a thread begins with %.40q", thread)
		}
		one.Ops += n
		one.PerWorker = append(one.PerWorker, n)
		longest := time.Duration(0)
		for text := range strings.FieldsFuncSeq(waits, func(r rune) bool { return r == ',' }) {
			us, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("redisson: a thread waited %.40q", text)
			}
			one.Waits = append(one.Waits, time.Duration(us)*time.Microsecond)
			longest = max(longest, one.Waits[len(one.Waits)-1])
		}
		one.Longest = append(one.Longest, longest)
	}
	res.Merge(one)
	return nil
}

// handOver is benchkit's, between two Java processes. Their answers have the wall clock's times,
// which the processes of a machine share.
func (j *jvms) handOver(rounds int) (took []time.Duration, err error) {
	lock := func(p *jvm) error { return p.send("hand-over", "lock", "hand-over", "lock") }
	holder, waiter := j.all[0], j.all[1]
	if err := lock(holder); err != nil {
		return nil, err
	}
	if _, err := holder.answer(javaDrain); err != nil {
		return nil, err
	}
	for range rounds {
		if err := lock(waiter); err != nil {
			return took, err
		}
		time.Sleep(settle)
		if err := holder.send("hand-over", "lock", "hand-over", "unlock"); err != nil {
			return took, err
		}
		left, err1 := holder.answer(javaDrain)
		came, err2 := waiter.answer(javaDrain)
		if err := errors.Join(err1, err2); err != nil {
			return took, err
		}
		took = append(took, came.ended.Sub(left.began))
		holder, waiter = waiter, holder
	}
	err = holder.send("hand-over", "lock", "hand-over", "unlock")
	if err == nil {
		_, err = holder.answer(javaDrain)
	}
	return took, err
}

// A jvm is one Java process with Redisson; its program is Peer.java.
type jvm struct {
	version string // of Redisson
	in      io.Writer
	answers chan string // lines; closed when the process has ended
	sent    int
}

type javaAnswer struct {
	value        string
	began, ended time.Time
}

func startJVM(h *host, classPath, addr string) (*jvm, error) {
	cmd := exec.Command("java", "-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-cp", classPath, "relock.interop.Peer", "mode=single", "nodes="+addr, "timeout=30000")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, fmt.Errorf("java: %w", err)
	}
	p := &jvm{in: in, answers: make(chan string, 16)}
	go func() {
		defer close(p.answers)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			p.answers <- strings.TrimSuffix(line, "\n")
		}
	}()
	h.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range p.answers { // until all of its output has been read
		}
		_ = cmd.Wait()
	})
	first, err := p.line(javaStart)
	hello := strings.Split(first, "\t") // ready, the jar, the client's id
	if err != nil || len(hello) != 3 || hello[0] != "ready" {
		return nil, errors.Join(fmt.Errorf("java begins with %q", first), err)
	}
	p.version = strings.TrimSuffix(strings.TrimPrefix(hello[1], "redisson-"), ".jar")
	return p, nil
}

// open has the process have so many clients, which its threads share evenly: a client is what a
// session is to us.
func (p *jvm) open(clients int) error {
	err := p.send("bench", "lock", "bench", "clients", strconv.Itoa(clients))
	if err == nil {
		_, err = p.answer(javaStart)
	}
	return err
}

func (p *jvm) send(fields ...string) error {
	p.sent++
	_, err := fmt.Fprintln(p.in, strconv.Itoa(p.sent)+"\t"+strings.Join(fields, "\t"))
	return err
}

func (p *jvm) line(within time.Duration) (string, error) {
	select {
	case line, ok := <-p.answers:
		if !ok {
			return "", errors.New("java: the process has ended")
		}
		return line, nil
	case <-time.After(within):
		return "", fmt.Errorf("java: no answer within %v", within)
	}
}

// answer returns what the process says to the last thing sent.
func (p *jvm) answer(within time.Duration) (a javaAnswer, err error) {
	line, err := p.line(within)
	if err != nil {
		return a, err
	}
	f := strings.SplitN(line, "\t", 5)
	if len(f) != 5 || f[0] != strconv.Itoa(p.sent) || f[1] != "ok" {
		return a, fmt.Errorf("java: %.200s", line)
	}
	began, err1 := strconv.ParseInt(f[2], 10, 64)
	ended, err2 := strconv.ParseInt(f[3], 10, 64)
	return javaAnswer{f[4], time.Unix(0, began), time.Unix(0, ended)}, errors.Join(err1, err2)
}
