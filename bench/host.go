package main

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// host is the testing.TB of a program: what starts the tests' servers starts these too. It
// has the methods that redistest uses; any other would panic.
type host struct {
	testing.TB
	cleanups []func()
}

func newHost() *host { return &host{} }

// stop is what Fatal and Skip end the program with, by way of [host.close].
type stop struct{ error }

// close stops the servers, and turns a Fatal into an error. It is to be deferred.
func (h *host) close(err *error) {
	if p := recover(); p != nil {
		s, ok := p.(stop)
		if !ok {
			h.end()
			panic(p)
		}
		*err = errors.Join(*err, s.error)
	}
	h.end()
}

func (h *host) end() {
	for len(h.cleanups) > 0 {
		last := h.cleanups[len(h.cleanups)-1]
		h.cleanups = h.cleanups[:len(h.cleanups)-1]
		last()
	}
}

func (h *host) Helper()                           {}
func (h *host) Failed() bool                      { return false } // a Fatal ends the program
func (h *host) Cleanup(f func())                  { h.cleanups = append(h.cleanups, f) }
func (h *host) Logf(format string, args ...any)   { fmt.Fprintf(os.Stderr, format+"\n", args...) }
func (h *host) Fatal(args ...any)                 { panic(stop{errors.New(fmt.Sprint(args...))}) }
func (h *host) Fatalf(format string, args ...any) { panic(stop{fmt.Errorf(format, args...)}) }
func (h *host) Skipf(format string, args ...any)  { h.Fatalf(format, args...) }

func (h *host) TempDir() string {
	dir, err := os.MkdirTemp("", "relock-bench-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
