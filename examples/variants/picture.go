// This file draws.
package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A screen is where the run shows itself. All its lines fit into 80 columns.
type screen struct{ w io.Writer }

func (s *screen) printf(format string, args ...any) { fmt.Fprintf(s.w, format, args...) }

// A lane is what one party did, in one line of a picture.
type lane struct {
	name  string
	stays []stay
}

// A stay is one visit inside a lock, in times since the run began.
type stay struct {
	asked, in, out time.Duration
	fill           byte
}

// stay notes that the party is inside from now until the returned function is called.
func (l *lane) stay(start time.Time, asked time.Duration, fill byte) (leave func()) {
	l.stays = append(l.stays, stay{asked: asked, in: time.Since(start), fill: fill})
	return func() { l.stays[len(l.stays)-1].out = time.Since(start) }
}

// columns is how wide a picture is.
const columns = 66

// draw draws lanes to scale: a dot for who waits, a letter for who is inside.
func (s *screen) draw(lanes []lane) {
	var end time.Duration
	for _, l := range lanes {
		for _, st := range l.stays {
			end = max(end, st.out)
		}
	}
	step := max(end/columns+1, time.Millisecond)
	scale := ""
	for c := 0; c < columns-8; c += 11 {
		scale += fmt.Sprintf("%-11d", (step * time.Duration(c)).Milliseconds())
	}
	s.printf("  %-9s %s\n", "ms", strings.TrimSpace(scale))
	for _, l := range lanes {
		row := []byte(strings.Repeat(" ", columns+1))
		put := func(from, to time.Duration, fill byte) {
			for c := from / step; c < to/step && int(c) < len(row); c++ {
				row[c] = fill
			}
		}
		for _, st := range l.stays {
			put(st.asked, st.in, '.')
			put(st.in, st.out, st.fill)
		}
		s.printf("  %-9s %s\n", l.name, strings.TrimRight(string(row), " "))
	}
}

func (s *screen) fair(o serviceOrder) {
	s.printf("\nFair lock: first come, first served, whatever service one came to\n\n")
	row := func(name string, cell func(i int) string, text string) {
		line := ""
		for i := range customers {
			line += fmt.Sprintf("%4s", cell(i))
		}
		s.printf("  %-9s%s%s\n", name, line, text)
	}
	row("came", func(i int) string { return fmt.Sprint(i + 1) }, "")
	row("to", func(i int) string { return string(rune('A' + i%services)) }, "")
	served := func(name string, order []int) {
		row(name, func(i int) string { return fmt.Sprint(order[i]) }, fmt.Sprintf("   %d overtaken", overtaken(order)))
	}
	served("fairlock", o.fair)
	served("rlock", o.plain)
}

func (s *screen) readWrite(r reading) {
	s.printf("\nRead-write lock: readers side by side, a writer alone, and not starved\n\n")
	s.draw(r.lanes)
	s.printf("\n  up to %d readers at once; the writer waited %v while readers kept coming\n",
		r.together, (r.entered - r.came).Round(time.Millisecond))
}

func (s *screen) limit(l limited) {
	s.printf("\nSemaphore: %d permits for %d workers\n\n", permits, workers)
	s.draw(l.lanes)
	s.printf("\n  never more than %d at once\n", l.together)
}

func (s *screen) crash(c crashed) {
	s.printf("\nSemaphore: a process that holds 2 of %d permits crashes (lease %v)\n\n", permits, c.lease)
	s.draw([]lane{
		{name: "crashed", stays: []stay{{in: 0, out: c.died, fill: '2'}}},
		{name: "leased", stays: []stay{{asked: c.died, in: c.died, out: c.entered, fill: '~'}}},
		{name: "next", stays: []stay{{asked: c.died, in: c.entered, out: c.entered + c.lease/4, fill: '3'}}},
	})
	s.printf("\n  %d permit was free meanwhile; the other 2 were back %v after the crash\n",
		c.free, (c.entered - c.died).Round(time.Millisecond))
}
