// This file shows how far a run is while it is under way.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// A screen is where the run shows itself. All its lines fit into 80 columns.
type screen struct {
	w        io.Writer
	terminal bool
}

// newScreen writes to f, with a moving bar if that is a terminal.
func newScreen(f *os.File) *screen {
	info, err := f.Stat()
	return &screen{
		w:        f,
		terminal: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb",
	}
}

func (s *screen) printf(format string, args ...any) { fmt.Fprintf(s.w, format, args...) }

// progress shows how done grows to total: as a bar on a terminal, else as a line each
// second. The returned function ends that with a last line, and waits for it.
func (s *screen) progress(name string, done *atomic.Int64, total int) (stop func()) {
	start := time.Now()
	every := time.Second
	if s.terminal {
		every = 50 * time.Millisecond
	}
	quit, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.progressLine(name, int(done.Load()), total, time.Since(start), false)
			case <-quit:
				s.progressLine(name, int(done.Load()), total, time.Since(start), true)
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-finished
	}
}

func (s *screen) progressLine(name string, done, total int, took time.Duration, last bool) {
	of := thousands(total)
	counts := fmt.Sprintf("%*s of %s customers %4.1f s", len(of), thousands(done), of, took.Seconds())
	if !s.terminal {
		s.printf("  %-14s %s\n", name, counts)
		return
	}
	const width = 20
	full := width * done / max(total, 1)
	s.printf("\r  %-14s [%s%s] %s", name, strings.Repeat("#", full), strings.Repeat(".", width-full), counts)
	if last {
		s.printf("\n")
	}
}

// thousands writes n with a space between groups of three digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}
