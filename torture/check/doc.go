// Package check compares what worker processes have written down with what locks promise.
//
// A violation is tolerated if it lies in a window in which the nemesis made Redis lose data.
// It is reported then, and counted apart. Nothing else is tolerated, but for what cannot be
// blamed on a lock: a process that did not run could not see that its context had ended.
package check
