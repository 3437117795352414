package slownet

import (
	"syscall"
	"time"
)

// sleepUntil sleeps in the kernel: a timer of Go's may be late by a millisecond in a program that
// otherwise only waits for the network, since epoll counts in milliseconds.
func sleepUntil(due time.Time) {
	for d := time.Until(due); d > 0; d = time.Until(due) {
		ts := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&ts, nil) // a signal may end it early
	}
}
