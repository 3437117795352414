// Package gocron runs the jobs of github.com/go-co-op/gocron/v2 once, although several processes schedule
// them. It is a module of its own, so that the locks do not need gocron.
//
// There are two ways:
//
//   - [NewLocker]: all processes start a job at each of its times, and one of them gets the job's lock
//     and runs it. The work is spread, and no process is needed for the others to go on.
//   - [NewElector]: one process, the leader, runs all jobs.
//
// # What is guaranteed by the locker
//
// A job runs at most once at a time, and once at each of its times, if these are further apart than
// [AtLeast] and the processes start it less than AtLeast apart: their clocks, and how late a busy process
// is, count. The lock stands for AtLeast from when it was acquired, however soon the job ends. Give jobs
// times that all processes agree on, as gocron.CronJob does. The times of a gocron.DurationJob count from the
// start of each process, unless gocron.WithStartAt has them agree.
//
// A job that takes longer than its interval keeps its lock for as long as it runs: the times in between
// are skipped, in all processes.
//
// # What is not
//
//   - A process that dies while it runs a job leaves the lock for its lease, the session's Config.Lease (30 s by
//     default) or [AtMost]: up to so long after, all times of that job are skipped. A job that
//     was killed is not run again before its next time.
//   - If Redis cannot be reached a job is skipped, not run by all.
//   - gocron gives a job no context that ends when its lock is lost, as in a failover that lost data. The
//     session's Logger tells it. A job that must never run beside another takes a lock of its own
//     with rlock.Mutex.Do, works on that context, and sends a fencing token along.
//   - With the elector, when the leader changes, the next one may run a job at a time at which the last one
//     has run it, if its clock is behind; and after a leader that died no job runs until its lease is over.
//   - With the elector, a job that takes longer than its interval runs beside itself, and in two processes after
//     the leader has changed. A locker prevents that only without an elector: gocron asks no locker in a scheduler
//     that has one.
package gocron
