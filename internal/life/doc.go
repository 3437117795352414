// Package life is the life of a session: what its end has to wait for, and what ends with it. A
// session is open; it may drain, when Shutdown waits for what is under way; it closes, when that is
// ended; and it is over when no goroutine of it is left.
//
// group.go counts the goroutines of a session, and what else its end waits for.
//
// queue.go has what is worked off in the background, by goroutines that end when there is nothing left.
//
// env.go is what the parts of a session have of it.
//
// registry.go has what is known of each name, once. It knows neither Redis nor locks.
package life
