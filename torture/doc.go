// Package torture runs the locks while Redis, the network and the processes that use them are
// made to fail, and checks that they keep their promises.
//
// A round starts a deployment of Redis and a few worker processes that take locks of all kinds
// at random. Two nemeses make things fail until the faults are told to end; then each worker
// has to get each lock, all end, and nothing may be left in Redis. What the workers saw is
// written down outside of Redis, and compared with what the locks promise.
//
// A round with a crowd is one of 64 sessions that all stand in the line of one plain and of one fair lock.
// There one fault is made at a time, with quiet behind it, and no call may wait for longer than the
// fault is known to cost.
//
// A round in a rush is one of locks that are passed on thousands of times a second, inside of processes and
// between them. Its whole history is checked by porcupine, and by sets that are changed only inside of the locks.
//
//	oracle    what workers write down, in files that survive kill -9
//	worker    one process: random operations on all kinds of lock
//	servers   Redis: standalone, Sentinel, Cluster, several servers for quorums
//	proxy     a network that can be made bad
//	nemesis   what fails, and when it did
//	check     the promises
//	history   models of locks for porcupine, and small histories of operations
//	plan.go   what a round consists of; crowd.go for one with a crowd, rush.go for one in a rush
//	round.go  one round, from the first server to the result
//	report.go the numbers of all rounds
//
// The test of this package is the program: go test runs rounds for about two minutes,
// make torture as long as it is told to. RELOCK_TORTURE_ROUNDS=crowd leaves out all but the rounds
// with a crowd; rush and mixed do the like. make histories runs rounds in a rush until it has checked so many acquisitions. It prints a seed, which decides what the nemeses and
// the workers choose. What the processes do at the same time it does not decide, so a seed
// that failed once may need a few runs to fail again; it is kept in seeds_test.go.
package torture
