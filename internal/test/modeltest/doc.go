// Package modeltest plays random operations against a kind of lock and compares what
// comes of them with a plain model in memory.
//
// A world has a miniredis and a few seats, on each of which one process after another
// runs: a session, which is started, closed, killed (its connections are cut for good and
// its callers forgotten, as when a process dies) or cut off for a moment. Each seat has
// actors, who do one thing at a time. All of it lives in a synctest bubble: hours of
// leases take seconds, commands take no time at all, and after every step the world is
// quiet, so that what must have happened has happened, and what has not is late.
//
// An adapter brings the kind of lock: its operations with their weights, and the model
// that judges them (see [Model]). What step n does is drawn from the seed and n alone, so
// that a seed gives the same operations again. Which of two goroutines is served first it
// does not decide: the model must take each outcome that is allowed.
//
// What this does not show: anything that needs latency, lost replies or a real server;
// for those there are the fault and stress tests.
//
// A mutex needs no model of its own: [NewMutex] has one, and [MutexKind] says what is
// particular. Another kind of lock brings a [Model]. Its operations start calls with
// World.Begin, and leave there what Check needs to judge them; Check applies what ended
// to the model in the order releases, refusals, grants (all of it is of one instant),
// lets leases run out by the bubble's clock, and compares.
//
// When a run fails, its seed and operations are printed. RELOCK_SEED=n plays that seed
// alone; RELOCK_STRESS=n plays about n more steps with fresh seeds.
package modeltest
