// Package simulate runs the library itself, not a model of it, in made-up time: many sessions, an embedded Redis and
// a network in memory, in the bubble of a synctest. Minutes take a second. It has tests only.
//
// A seed draws everything that is not the library: latencies, think times, how long sections last, with which options
// callers wait and when they give up, and the faults: partitions, cut connections, a Redis that is silent or restarts,
// processes that die, hosts far away, locks that an operator forces or deletes. It replays those times; which of two
// goroutines runs first at the same instant it does not decide. What must hold is checked from outside of the locks:
// see ledger_test.go.
//
// A process that is stopped as a whole cannot be simulated, since its timers would have to stop with it: its network
// can. Nor does a failover lose anything here: what that costs is in docs/guarantees.md.
//
// CI runs 200 seeds of 20 sessions and one minute. The largest runs so far had 1,000 sessions and ten minutes, with faults
// (make simulate SEEDS=1 SEED=7002 SESSIONS=1000 MINUTES=10 KIND=…, each beside other work on two cores):
//
//	plain      26,627 sections of 1,004 processes, 2,005,397 commands, longest wait 1m47s; passed in  8m11s
//	semaphore  32,981 sections of 1,004 processes, 2,716,450 commands, longest wait 42s;   passed in 11m44s
//	fair, rw   both passed, in 6m27s and 5m07s, beside each other
package simulate
