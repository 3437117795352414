package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/redis/rueidis"

	"relock/internal/script"
	"relock/rlock"
)

// The exit codes of relock itself. 64, 69, 70 and 75 are those of sysexits.h; 79 is the first
// number behind them. docs/cli.md lists them.
const (
	exitFound       = 1  // doctor found a failure; force found nothing to end
	exitUsage       = 64 // wrong usage
	exitUnavailable = 69 // Redis did not answer, or cannot serve now
	exitOther       = 70 // any other error, as a refusal by Redis
	exitNotAcquired = 75 // another owner holds the lock, and the wait is over
	exitLost        = 79 // the lock was lost while the command ran
	exitCannotRun   = 126
	exitNotFound    = 127
	exitSignal      = 128 // and the number of the signal
)

// exitError ends relock with a code of its own. Without an error nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// silent reports whether the code says it all.
func silent(err error) bool {
	var e *exitError
	return errors.As(err, &e) && e.err == nil
}

// usage is an error of the caller's.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode returns the code for an error.
func exitCode(err error) int {
	var e *exitError
	switch {
	case errors.As(err, &e):
		return e.code
	case script.Denied(err): // before a bad config, which a session calls it
		return exitOther
	case errors.Is(err, rlock.ErrArgument), errors.Is(err, rlock.ErrName), errors.Is(err, rlock.ErrConfig):
		return exitUsage
	case unavailable(err): // before "not acquired": an attempt without an answer is both
		return exitUnavailable
	case errors.Is(err, rlock.ErrNotAcquired):
		return exitNotAcquired
	case errors.Is(err, rlock.ErrLost):
		return exitLost
	case errors.Is(err, context.Canceled):
		return exitSignal + int(syscall.SIGINT)
	}
	return exitOther
}

// signalled is the error of a command that a signal has ended.
func signalled(s os.Signal) error {
	code := exitOther
	if n, ok := s.(syscall.Signal); ok {
		code = exitSignal + int(n)
	}
	return &exitError{code, fmt.Errorf("ended by signal: %v", s)}
}

// unavailable reports whether err says that Redis did not answer, or cannot serve now. What it
// does not allow this user is another error: waiting does not help.
func unavailable(err error) bool {
	if script.Denied(err) {
		return false
	}
	if errors.Is(err, rlock.ErrUnavailable) {
		return true
	}
	// The error of a command that relock has sent itself, or of its connection.
	if refusal := new(rueidis.RedisError); errors.As(err, &refusal) {
		return script.Unavailable(refusal)
	}
	if errors.As(err, new(*fs.PathError)) { // of standard output; as a connection's, it has a number that is a net.Error
		return false
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF)
}
