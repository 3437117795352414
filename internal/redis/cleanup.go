package redis

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/clock"
	"relock/internal/life"
	"relock/internal/script"
)

// A Cleanup works off a queue of jobs, with one goroutine as long as there are any, and a few more for those that
// are to leave at once. Add and the methods beside it wait for nothing but each other, and may be called with other
// mutexes held; but for Return.
//
// Jobs that are to leave at once wait in a queue of their own, which up to mostAhead goroutines work off: each has one
// pipeline on its way, with all that was there when it came. What is not answered goes into the other queue, and is
// sent again from there. Until a job is sent it may be taken by a caller that is about to send something itself: that
// saves it a pipeline, and the caller a wait for the answer.
type Cleanup struct {
	env      life.Env
	timeout  time.Duration // of one pipeline
	send     func(context.Context, []script.Command) []rueidis.RedisResult
	queue    life.Queue[*Job]
	first    life.Queue[*Job] // those that are to leave at once
	aside    life.Queue[*Job] // spare ones that wait for their slot to have moved
	failures int              // pipelines of queue in a row that were not answered; of its goroutine alone
	spare    life.Group       // spare jobs

	mu      sync.Mutex
	busy    life.Group // the other jobs, until Done has returned
	givenUp int        // of those
}

// A Job is some commands that must be answered, and whatever that is for.
type Job struct {
	Name  string // of the lock, for the Logger
	Cmds  []script.Command
	Until time.Duration // by the clock: when there is nothing left to be released
	// Done is called in the background, without a mutex, when all commands are answered, or with
	// the last error when some were given up. Not if there is no command, nor if the session has
	// ended before. May be nil.
	Done func(err error)
	// Heard is called as Done is, with each result of the i-th command; and Again, if the job goes on for want of an
	// answer, with the last error. Both may be nil.
	Heard func(i int, res rueidis.RedisResult)
	Again func(err error)
	// Gone is closed behind Done, and whenever Done is not called. May be nil.
	Gone chan struct{}

	spare   bool  // see AddSpare
	sent    []int // which of the job's commands Cmds are; nil: all
	refused error // why one is not sent again
}

const (
	// batch bounds how many jobs one pipeline is for.
	batch = 256
	// mostAhead bounds the goroutines of what is to leave at once: so many pipelines are on their way before a job waits
	// for an answer to others.
	mostAhead = 4
	// movingPause is how long a spare job waits for its slot to have moved before it is sent again. Each attempt puts the
	// session in doubt, and Close waits for one or two of these pauses.
	movingPause = 500 * time.Millisecond
)

// NewCleanup returns a Cleanup that has nothing to do. When the context of env ends, the session has: what is not
// answered is given up, and so is what comes later. send sends commands in one pipeline, for timeout at most; the i-th
// result is that of the i-th command.
func NewCleanup(env life.Env, timeout time.Duration, send func(context.Context, []script.Command) []rueidis.RedisResult) *Cleanup {
	q := &Cleanup{env: env, timeout: timeout, send: send}
	q.queue = life.Queue[*Job]{Go: env.Background.Go, Work: q.work, Batch: batch, Most: 1}
	q.first = life.Queue[*Job]{Go: env.Background.Go, Work: q.workAhead, Batch: batch, Most: mostAhead}
	q.aside = life.Queue[*Job]{Go: env.Background.Go, Work: q.waitAside, Batch: batch, Most: 1}
	return q
}

// Add has a job done.
func (q *Cleanup) Add(j Job) {
	if len(j.Cmds) == 0 || !q.enter(&j) {
		j.gone()
		return
	}
	q.queue.Add(&j)
}

// AddSpare has a command executed that nobody misses if it is given up until then: what it ends is told of by another job
// too, or soon over. It is given up without a word, and is in no report of Close. While Redis serves its keys one by one
// only, since their slot moves, it waits aside: these pauses hold up no other job.
func (q *Cleanup) AddSpare(cmd script.Command, until time.Duration) {
	q.Add(Job{Cmds: []script.Command{cmd}, Until: until, spare: true})
}

// enter counts a job that comes. It reports false if the session has ended: then the job counts as one that was given up.
func (q *Cleanup) enter(j *Job) bool {
	if q.env.Context.Err() != nil {
		q.count(j, 0, 1)
		return false
	}
	q.count(j, 1, 0)
	return true
}

// count notes that there are n more jobs, which are like j, and that so many were given up.
func (q *Cleanup) count(j *Job, n, givenUp int) {
	if j.spare {
		q.spare.Add(n)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy.Add(n)
	q.givenUp += givenUp
}

func (j *Job) gone() {
	if j.Gone != nil {
		close(j.Gone)
	}
}

// Leave has a job done whose first attempt leaves at once. It reports false if the session has ended: then the
// job counts as one that was given up, and no function of it is called. The job must have commands, and belongs to q
// until its Done.
func (q *Cleanup) Leave(j *Job) bool {
	if !q.enter(j) {
		return false
	}
	q.first.Add(j)
	return true
}

// Take takes a job of Leave for a caller that sends it itself, and then has to call Return. It reports false if the
// job was sent, or taken, already.
func (q *Cleanup) Take(j *Job) bool {
	return q.first.Remove(func(o *Job) bool { return o == j })
}

// Return ends what Take has begun, with the results of the job's commands, or nil if they were not sent: then the job
// leaves after all, and no function of it is called. Else its functions are: no mutex may be held.
func (q *Cleanup) Return(j *Job, results []rueidis.RedisResult) {
	if results == nil {
		q.first.Add(j)
	} else if q.hear(j, results) != nil {
		q.queue.Add(j)
	}
}

// work sends jobs, and pauses if one of them is to be sent again.
func (q *Cleanup) work(jobs []*Job) {
	again, atOnce := q.sendAll(jobs)
	if len(again) == 0 {
		q.failures = 0
		return
	}
	q.queue.Add(again...)
	q.failures++
	if atOnce && q.failures == 1 {
		return
	}
	if clock.Pause(q.env.Context, q.failures) != nil {
		q.failures = 0 // the session ends, and so do the tries
	}
}

// workAhead sends what is to leave at once.
func (q *Cleanup) workAhead(jobs []*Job) {
	again, _ := q.sendAll(jobs)
	q.queue.Add(again...)
}

// waitAside has jobs sent again after a pause.
func (q *Cleanup) waitAside(jobs []*Job) {
	_ = clock.Sleep(q.env.Context, movingPause)
	q.queue.Add(jobs...)
}

// sendAll sends the commands of some jobs and returns what has to be sent again and does not wait aside; atOnce, if it
// failed with another caller's context. rueidis connects with that of the first caller, and when that
// one gives up, all that wait for the connection fail.
func (q *Cleanup) sendAll(jobs []*Job) (again []*Job, atOnce bool) {
	var cmds []script.Command
	for _, j := range jobs {
		cmds = append(cmds, j.Cmds...)
	}
	ctx, cancel := context.WithTimeout(q.env.Context, q.timeout)
	defer cancel()
	results := q.send(ctx, cmds)
	for _, j := range jobs {
		n := len(j.Cmds) // hear leaves those that have no answer
		last := q.hear(j, results[:n])
		results = results[n:]
		switch {
		case last == nil:
		case j.spare && script.IsTryAgain(last):
			q.aside.Add(j)
		default:
			atOnce = atOnce || script.IsContext(last) && ctx.Err() == nil
			again = append(again, j)
		}
	}
	return again, atOnce
}

// hear takes in the results of a job's commands. It ends the job, or leaves it with those that are to be sent
// again, and returns why.
func (q *Cleanup) hear(j *Job, results []rueidis.RedisResult) (again error) {
	now := q.env.Clock()
	var left []script.Command
	var sent []int
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
		if script.Unavailable(err) && now < j.Until && q.env.Context.Err() == nil {
			again = err
			left, sent = append(left, cmd), append(sent, at)
		} else {
			j.refused = err
		}
	}
	if left == nil {
		q.done(j, j.refused)
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
	givenUp := 0
	if err != nil && !j.spare {
		givenUp = 1
		q.env.Log.Warn("relock: a release was never confirmed; the lock ends with its lease", "name", api.Shown(j.Name), "error", err)
	}
	if j.Done != nil {
		j.Done(err)
	}
	q.count(j, -1, givenUp)
	j.gone()
}

// Idle returns a channel that is closed when nothing is left to be done, but for spare jobs.
func (q *Cleanup) Idle() <-chan struct{} { return q.busy.Idle() }

// Settled returns a channel that is closed when no spare job is left.
func (q *Cleanup) Settled() <-chan struct{} { return q.spare.Idle() }

// Busy reports whether anything is left to be done.
func (q *Cleanup) Busy() bool { return q.busy.Count()+q.spare.Count() > 0 }

// Forgive has Unconfirmed count anew: what was given up before is over by now, or soon.
func (q *Cleanup) Forgive() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.givenUp = 0
}

// Unconfirmed returns how many jobs were given up, or are not over yet. Spare ones do not count.
func (q *Cleanup) Unconfirmed() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.givenUp + q.busy.Count()
}
