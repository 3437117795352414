// Package clock is about when something is due. It knows neither Redis nor locks; whatever waits uses it.
//
// schedule.go says when what has to be looked at next: items by the times when they are due,
// and one goroutine with one timer that visits them.
//
// backoff.go has the pauses between attempts: those of a caller's Backoff, and the one that
// follows a command without an answer.
//
// wake.go has what wakes one that waits.
//
// deadline.go has the time limits of commands, at the price of a few timers a second.
package clock
