package locktest

import (
	"relock/locktrace"
	"relock/rlock"
)

// Failed returns a Trace that tells of each attempt that ended with an error.
func Failed() (*rlock.Trace, <-chan struct{}) {
	c := make(chan struct{}, 10000)
	return &rlock.Trace{Attempt: func(e locktrace.Attempt) {
		if e.Err != nil {
			c <- struct{}{}
		}
	}}, c
}

// Refusals is a Trace that tells of each attempt that found the lock held.
func Refusals() (*rlock.Trace, <-chan struct{}) {
	c := make(chan struct{}, 10000)
	return &rlock.Trace{Attempt: func(e locktrace.Attempt) {
		if !e.Granted && e.Err == nil {
			c <- struct{}{}
		}
	}}, c
}
