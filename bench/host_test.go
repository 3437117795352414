package main

import (
	"testing"

	"relock/internal/test/redistest"
)

// A program starts and ends the tests' servers as a test does.
func TestHostStartsAndEndsServers(t *testing.T) {
	redistest.Real(t) // skips where there is none
	h := newHost()
	var err error
	func() {
		defer h.close(&err)
		s := redistest.Real(h)
		c := s.Client(h)
		if pong, err := c.Do(t.Context(), c.B().Ping().Build()).ToString(); err != nil || pong != "PONG" {
			t.Errorf("%q, %v", pong, err)
		}
	}()
	if err != nil {
		t.Error(err)
	}
}

// What would end a test ends the program's work with an error, once its servers are stopped.
func TestHostTurnsAFatalIntoAnError(t *testing.T) {
	h := newHost()
	ended := false
	var err error
	func() {
		defer h.close(&err)
		h.Cleanup(func() { ended = true })
		h.Fatalf("no %s", "luck")
	}()
	if err == nil || err.Error() != "no luck" || !ended {
		t.Errorf("%v, ended: %v", err, ended)
	}
}
