// This file prints what came of it.
package main

import (
	"fmt"
	"strings"
	"time"

	"relock/examples/internal/demo"
)

// header says where the run takes place and what it does.
func (s *screen) header(redis *demo.Redis, j job) {
	s.printf("relock quickstart\n\n")
	s.printf("  Redis: %s\n", redis.Text)
	s.printf("  Keys:  %s..., removed at the end\n", redis.Prefix)
	s.printf("  Shop:  %d services x %d goroutines, %s customers for %s units\n\n",
		j.services, j.goroutines, thousands(j.customers), thousands(j.stock))
}

// sales prints the sale under the lock beside the one without.
func (s *screen) sales(locked, open sale) {
	row := func(name, a, b string) { s.printf("  %-38s %14s %14s\n", name, a, b) }
	both := func(name string, number func(sale) int) {
		row(name, thousands(number(locked)), thousands(number(open)))
	}
	rule := strings.Repeat("-", 38+2*15)
	s.printf("\n")
	row("", "with the lock", "without")
	s.printf("  %s\n", rule)
	both("customers served", func(r sale) int { return r.customers })
	both("units in stock", func(r sale) int { return r.stock })
	both("units sold", func(r sale) int { return r.sold })
	both("oversold by", sale.oversold)
	both("units left by the books", func(r sale) int { return r.left })
	both("audits that did not add up", func(r sale) int { return r.badAudits })
	row("time", seconds(locked.took), seconds(open.took))
	s.printf("  %s\n", rule)
	row("lock acquisitions", thousands(locked.acquired), "-")
	row("  of which nested", thousands(locked.acquired-len(locked.waits)), "-")
	row("  per second", thousands(locked.perSecond()), "-")
	row("Redis commands per acquisition", fmt.Sprintf("%.2f", locked.commandsEach()), "-")
	row("wait for the lock, median", millis(locked.waited(0.5)), "-")
	row("                   99 %", millis(locked.waited(0.99)), "-")
	row("                   longest", millis(locked.waited(1)), "-")
	s.printf("\n  Commands are all that the sessions sent, not the shop's own GET and SET.\n")
	s.printf("  Waits are those of outermost acquisitions.\n")
}

// timeLine prints the cut-off to scale, and then in words.
func (s *screen) timeLine(c cutOff) {
	const steps, stepWidth = 6, 10
	// 250 ms a step for a lease of 1 s, and more if the next holder came late.
	step := max(c.lease/4, (c.entered+c.lease/8)/steps+1)
	column := func(t time.Duration) int { return min(int(t*stepWidth/step), steps*stepWidth) }
	// bar draws from one time to another. Wherever it ends, a text of 8 characters has room behind it.
	bar := func(name string, from, to time.Duration, fill, end string) {
		a, b := column(from), column(to)
		s.printf("  %-8s %s%s%s\n", name, strings.Repeat(" ", a), strings.Repeat(fill, b-a), end)
	}
	scale := ""
	for i := range steps + 1 {
		scale += fmt.Sprintf("%-*d", stepWidth, (step * time.Duration(i)).Milliseconds())
	}
	s.printf("\nA holder is cut off from Redis (lease %v)\n\n", c.lease)
	s.printf("  %-8s %s\n", "ms", strings.TrimSpace(scale))
	s.printf("  %-8s %s|\n", "", strings.Repeat("|"+strings.Repeat("-", stepWidth-1), steps))
	bar("network", 0, c.cut, "=", "x cut")
	bar("holder", 0, c.ended, "#", "! ended")
	bar("lease", 0, c.expires, "~", "| over")
	end := step * steps
	s.printf("  %-8s %s%s%s\n\n", "next",
		strings.Repeat(" ", column(c.cut)),
		strings.Repeat(".", column(c.entered)-column(c.cut)),
		strings.Repeat("#", column(end)-column(c.entered)))

	event := func(at time.Duration, format string, args ...any) {
		s.printf("  %5d ms  %s\n", at.Milliseconds(), fmt.Sprintf(format, args...))
	}
	event(0, "the holder enters; its lease is renewed every %d ms", (c.lease / 3).Milliseconds())
	event(c.cut, "the holder's network is cut, and the next one begins to wait")
	event(c.ended, "the holder's context ends: %v", c.cause)
	event(c.expires, "Redis lets the lease go")
	event(c.entered, "the next one enters, %s after that context ended", millis(c.entered-c.ended))
	if c.check() == nil {
		s.printf("     later  the network is back; the holder's Unlock returns ErrLost,\n")
		s.printf("            and leaves the next one's hold alone\n")
	}
}

// verdict ends a run in which nothing was violated.
func (s *screen) verdict() {
	s.printf("\nOK: nothing was oversold under the lock, and it had one owner at a time.\n")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
