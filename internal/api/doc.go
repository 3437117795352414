// Package api is what callers see of every kind of lock: the errors, of which package rlock has the names, and the
// options of one Lock. It knows nothing of how a lock is taken, so that all other packages may use it.
//
// errors.go has the errors that callers of all locks see, and makes their texts: how a context
// ended, which lock it was about.
//
// options.go has the options of one Lock, TryLock or Do, of whatever kind of lock. Package
// rlock documents them.
package api
