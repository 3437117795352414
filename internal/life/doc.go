// Package life is the life of a session: what its end has to wait for, and what ends with it. A
// session is open; it may drain, when Shutdown waits for what is under way; it closes, when that is
// ended; and it is over when no goroutine of it is left.
//
// group.go counts the goroutines of a session, so that its end can wait for them.
//
// registry.go has what is known of each name, once. It knows neither Redis nor locks.
package life
