package redis

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/life"
	"relock/internal/script"
)

// CleanupConfig is what a Cleanup needs of its session. All fields must be set.
type CleanupConfig struct {
	Context    context.Context // when it ends, what is not answered is given up
	Background *life.Group     // counts the goroutine
	Timeout    time.Duration   // of one pipeline
	Clock      func() time.Duration
	// Send sends commands in one pipeline; the i-th result is that of the i-th command.
	Send func(context.Context, []script.Command) []rueidis.RedisResult
	// Pause sleeps before the n-th retry in a row, and returns an error when its context ends.
	Pause func(ctx context.Context, n int) error
	Log   *slog.Logger // hears of what was given up; it must not block
}

// A Cleanup works off a queue of jobs, with one goroutine as long as there are any, and a few more for those that
// are to leave at once. Add and the methods beside it wait for nothing but each other, and may be called with other
// mutexes held; but for Return.
type Cleanup struct {
	cfg CleanupConfig

	mu          sync.Mutex
	queue       []Job
	first       firstSends
	taken       int           // jobs that are off the queues and not done
	running     bool          // the goroutine works the queue off
	stopped     bool          // no job is taken any more
	unconfirmed int           // jobs that were given up
	idle        chan struct{} // made by Idle, closed when nothing is left
}

// A Job is some commands that must be answered, and whatever that is for.
type Job struct {
	Name  string // of the lock, for the Logger
	Cmds  []script.Command
	Until time.Duration // by the clock: when there is nothing left to be released
	// Done is called in the background, without a mutex, when all commands are answered, or with
	// the last error when some were given up. Not if there is no command, nor after Stop. May be
	// nil.
	Done func(err error)
	// Heard is called as Done is, with each result of the i-th command; and Again, if the job goes on for want of an
	// answer, with the last error. Both may be nil.
	Heard func(i int, res rueidis.RedisResult)
	Again func(err error)
	// Gone is closed behind Done, and whenever Done is not called. May be nil.
	Gone chan struct{}
	// Spare: the job may be given up without being counted: what it ends is told of by another job too, or soon over.
	Spare bool

	sent   []int // which of the job's commands Cmds are; nil: all
	leaves bool  // it waits in the queue of first sends; guarded by the mutex of the Cleanup
}

// NewCleanup returns a Cleanup that has nothing to do.
func NewCleanup(cfg CleanupConfig) *Cleanup { return &Cleanup{cfg: cfg} }

// Add has a job done.
func (q *Cleanup) Add(j Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.stopped:
		if !j.Spare {
			q.unconfirmed++
		}
		j.gone()
	case len(j.Cmds) == 0:
		j.gone()
	default:
		q.enqueue(j)
	}
}

func (j *Job) gone() {
	if j.Gone != nil {
		close(j.Gone)
	}
}

// batch bounds how many jobs one pipeline is for.
const batch = 256

// work works the queue off, and ends when it is empty.
func (q *Cleanup) work() {
	for failures := 0; ; {
		jobs := q.take()
		if len(jobs) == 0 {
			return
		}
		again, atOnce := q.send(jobs)
		if len(again) == 0 {
			failures = 0
			continue
		}
		q.retry(again)
		failures++
		if atOnce && failures == 1 {
			continue
		}
		if q.cfg.Pause(q.cfg.Context, failures) != nil {
			failures = 0 // the session ends, and so do the tries
		}
	}
}

// retry puts jobs that were taken back into the queue.
func (q *Cleanup) retry(jobs []Job) {
	if len(jobs) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken -= len(jobs)
	q.enqueue(jobs...)
}

// enqueue puts jobs into the queue, and has it worked off. The mutex must be held.
func (q *Cleanup) enqueue(jobs ...Job) {
	q.queue = append(q.queue, jobs...)
	if !q.running {
		q.running = true
		q.cfg.Background.Go(q.work)
	}
}

// take takes jobs off the queue. If there are none, the goroutine must end.
func (q *Cleanup) take() []Job {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.queue), batch)
	if n == 0 {
		q.queue, q.running = nil, false
		q.signalIdle()
		return nil
	}
	jobs := append([]Job(nil), q.queue[:n]...)
	q.queue = q.queue[n:]
	q.taken += n
	return jobs
}

// send sends the commands of some jobs and returns what has to be sent again; atOnce, if it failed
// with another caller's context. rueidis connects with that of the first caller, and when that
// one gives up, all that wait for the connection fail.
func (q *Cleanup) send(jobs []Job) (again []Job, atOnce bool) {
	var cmds []script.Command
	for _, j := range jobs {
		cmds = append(cmds, j.Cmds...)
	}
	ctx, cancel := context.WithTimeout(q.cfg.Context, q.cfg.Timeout)
	defer cancel()
	results := q.cfg.Send(ctx, cmds)
	for _, j := range jobs {
		n := len(j.Cmds) // hear leaves those that have no answer
		last := q.hear(&j, results[:n])
		results = results[n:]
		if last != nil {
			atOnce = atOnce || script.IsContext(last) && ctx.Err() == nil
			again = append(again, j)
		}
	}
	return again, atOnce
}

// hear takes in the results of a job's commands. It ends the job, or leaves it with those that are to be sent
// again, and returns why.
func (q *Cleanup) hear(j *Job, results []rueidis.RedisResult) (again error) {
	now := q.cfg.Clock()
	var left []script.Command
	var sent []int
	var last error
	for i, cmd := range j.Cmds {
		at := i
		if j.sent != nil {
			at = j.sent[i]
		}
		if j.Heard != nil {
			j.Heard(at, results[i])
		}
		err := results[i].Error()
		if err == nil {
			continue
		}
		last = err
		if script.Unavailable(err) && now < j.Until && q.cfg.Context.Err() == nil {
			again = err
			left, sent = append(left, cmd), append(sent, at)
		}
	}
	if left == nil {
		q.done(j, last)
		return nil
	}
	j.Cmds, j.sent = left, sent
	if j.Again != nil {
		j.Again(again)
	}
	return again
}

// done ends a job, with the last error if it was given up.
func (q *Cleanup) done(j *Job, err error) {
	q.mu.Lock()
	q.taken--
	if err != nil && !j.Spare {
		q.unconfirmed++
	}
	q.mu.Unlock()
	if err != nil {
		q.cfg.Log.Warn("relock: a release was never confirmed; the lock ends with its lease", "name", j.Name, "error", err)
	}
	if j.Done != nil {
		j.Done(err)
	}
	j.gone()
}

// signalIdle tells those that wait for it if nothing is left. The mutex must be held.
func (q *Cleanup) signalIdle() {
	if q.idle != nil && !q.busy() {
		close(q.idle)
		q.idle = nil
	}
}

// Idle returns a channel that is closed when nothing is left to be done.
func (q *Cleanup) Idle() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.signalIdle()
	return idle
}

// Busy reports whether anything is left to be done.
func (q *Cleanup) Busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy()
}

// busy is Busy. The mutex must be held.
func (q *Cleanup) busy() bool { return q.running || q.first.workers > 0 || q.taken > 0 }

// Forgive has Unconfirmed count anew: what was given up before is over by now, or soon.
func (q *Cleanup) Forgive() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unconfirmed = 0
}

// Stop has every job given up that comes from now on.
func (q *Cleanup) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
}

// Unconfirmed returns how many jobs were given up, or have no answer yet.
func (q *Cleanup) Unconfirmed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unconfirmed + q.taken + len(q.queue) + len(q.first.queue)
}
