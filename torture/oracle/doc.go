// Package oracle is what the torture test knows about locks without asking Redis.
//
// Each worker process writes down what it does in a file that it has mapped into memory. The
// file survives the process, also after kill -9: the pages belong to the kernel. Times are of
// one clock that all processes of a machine share ([Now]).
//
// The evidence for a critical section is an interval. A worker notes the time, and then asks
// whether the section still stands. If it does, it stood at the time noted, however long the
// process was stopped in between. Two such times, the first and the last one, are the ends of
// an interval in which the section has certainly been trusted by its process.
package oracle
