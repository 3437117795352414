package redis

import (
	"slices"

	"github.com/redis/rueidis"
)

// Jobs that are to leave at once wait in a queue of their own, which up to mostAhead goroutines work off: each has one
// pipeline on its way, with all that was there when it came. What is not answered goes into the other queue, and is
// sent again from there. Until a job is sent it may be taken by a caller that is about to send something itself: that
// saves it a pipeline, and the caller a wait for the answer.

// mostAhead bounds the goroutines: so many pipelines are on their way before a job waits for an answer to others.
const mostAhead = 4

// firstSends are the jobs whose first attempt is sent at once. They are guarded by the mutex of the Cleanup.
type firstSends struct {
	queue   []*Job
	workers int  // goroutines
	coming  bool // one of them is about to look into the queue
}

// Leave has a job done whose first attempt leaves at once. It reports false after Stop: then the job counts as one
// that was given up, and no function of it is called. The job must have commands, and belongs to q until its Done.
func (q *Cleanup) Leave(j *Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped {
		q.unconfirmed++
		return false
	}
	q.leave(j)
	return true
}

// leave puts a job into the queue of first sends. The mutex must be held.
func (q *Cleanup) leave(j *Job) {
	d := &q.first
	j.leaves = true
	d.queue = append(d.queue, j)
	if !d.coming {
		q.begin()
	}
}

// begin has a goroutine more look into the queue of first sends, if there are not too many. The mutex must be held.
func (q *Cleanup) begin() {
	if q.first.workers < mostAhead {
		q.first.coming = true
		q.first.workers++
		q.cfg.Background.Go(q.workAhead)
	}
}

// Take takes a job of Leave for a caller that sends it itself, and then has to call Return. It reports false if the
// job was sent, or taken, already.
func (q *Cleanup) Take(j *Job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !j.leaves {
		return false
	}
	q.first.queue = slices.DeleteFunc(q.first.queue, func(o *Job) bool { return o == j })
	q.taken++
	j.leaves = false
	return true
}

// Return ends what Take has begun, with the results of the job's commands, or nil if they were not sent: then the job
// leaves after all, and no function of it is called. Else its functions are: no mutex may be held.
func (q *Cleanup) Return(j *Job, results []rueidis.RedisResult) {
	if results == nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.taken--
		q.leave(j)
		return
	}
	if q.hear(j, results) != nil {
		q.retry([]Job{*j})
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.signalIdle()
}

// workAhead sends what is to leave at once, and ends when there is no more.
func (q *Cleanup) workAhead() {
	for {
		jobs := q.takeAhead()
		if len(jobs) == 0 {
			return
		}
		again, _ := q.send(jobs)
		q.retry(again)
	}
}

// takeAhead takes jobs off the queue of first sends. If there are none, the goroutine must end.
func (q *Cleanup) takeAhead() (jobs []Job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := &q.first
	d.coming = false
	n := min(len(d.queue), batch)
	for _, j := range d.queue[:n] {
		j.leaves = false
		jobs = append(jobs, *j)
	}
	d.queue = slices.Delete(d.queue, 0, n)
	q.taken += n
	if n == 0 {
		d.workers--
		q.signalIdle()
	}
	if len(d.queue) > 0 { // more than one pipeline takes
		q.begin()
	}
	return jobs
}
