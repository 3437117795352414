package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// topFlags are the flags of top.
type topFlags struct {
	interval time.Duration
	count    int
	rows     int
	track    int
	order    string
}

func newTop(g *global) *cobra.Command {
	f := &topFlags{}
	cmd := &cobra.Command{
		Use:   "top [PATTERN]",
		Short: "Watch the most contended and the hottest locks, live",
		Long: `Watch the most contended and the hottest locks, live.

WAITING counts the callers in the line of a plain lock, the waiters in a fair queue, and the
sessions that wait elsewhere; HELD is the share of
samples in which the lock was held; CHANGES/s is how often its owner changed, at least: top
samples, and does not see every lock and unlock. Sections that follow one another inside a
process have one owner.

In a terminal, s changes the order and q ends it. Elsewhere, and with --json, each refresh is
printed below the last.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := "*"
			if len(args) > 0 {
				pattern = args[0]
			}
			if err := f.check(); err != nil {
				return err
			}
			return f.top(g, cmd.OutOrStdout(), pattern)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.interval, "interval", 2*time.Second, "time between refreshes, at least 100ms")
	flags.IntVarP(&f.count, "count", "n", 0, "end after so many refreshes (default: never)")
	flags.IntVar(&f.rows, "rows", 20, "how many locks to print where there is no terminal")
	flags.IntVar(&f.track, "track", 200, "how many locks to look at in each sample")
	flags.StringVar(&f.order, "sort", orderNames[0], "the order: "+strings.Join(orderNames, ", "))
	return cmd
}

func (f *topFlags) check() error {
	switch {
	case f.interval < 100*time.Millisecond:
		return usage("--interval is %v; it must be at least 100ms", f.interval)
	case f.count < 0:
		return usage("--count is %d; it must not be negative", f.count)
	case f.rows < 1:
		return usage("--rows is %d; it must be at least 1", f.rows)
	case f.track < 1:
		return usage("--track is %d; it must be at least 1", f.track)
	case orders[f.order] == nil:
		return usage("--sort is %q; it must be one of %s", f.order, strings.Join(orderNames, ", "))
	}
	return nil
}

// top samples and shows until it is told to end.
func (f *topFlags) top(g *global, w io.Writer, pattern string) error {
	ctx, stop := g.interruptible()
	defer stop()
	s, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	show := f.printer(g, w)
	if !g.json && term.IsTerminal(int(os.Stdout.Fd())) {
		sc, err := openScreen(f, stop)
		if err != nil {
			return err
		}
		defer sc.close()
		show = sc.show
	}
	p := newSampler(ctx, s, pattern, f.track)
	for n := 0; f.count == 0 || n < f.count; n++ {
		t, err := p.refresh(ctx, f.interval)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return nil // this is how top ends
		}
		if err != nil {
			return err
		}
		if err := show(t); err != nil {
			return err
		}
	}
	return nil
}

// printer shows refreshes where there is no terminal: as a table each, or one JSON object a
// line.
func (f *topFlags) printer(g *global, w io.Writer) func(*Totals) error {
	return func(t *Totals) error {
		t.sort(f.order)
		t.Top = t.Top[:min(len(t.Top), f.rows)]
		if g.json {
			return json.NewEncoder(w).Encode(t)
		}
		_, err := io.WriteString(w, strings.Join(t.lines(f.order, 0), "\n")+"\n\n")
		return err
	}
}

// lines prints a refresh: two lines about the whole, and the table, for lines of that width; 0: of any.
func (t *Totals) lines(order string, width int) []string {
	var text strings.Builder
	fmt.Fprintf(&text, "relock top  %s  %s in view, %s found\n", t.Time.Format(time.TimeOnly),
		count(t.Locks, "lock", "locks"), count(t.Found, "name", "names"))
	fmt.Fprintf(&text, "Redis runs %.0f scripts/s; top sends %.0f commands/s; by %s\n\n", t.Scripts, t.Commands, order)
	rows := [][]string{{"NAME", "KIND", "WAITING", "HELD", "CHANGES/s", "TTL", "HELD FOR", "HELD BY"}}
	for _, w := range t.Top {
		rows = append(rows, []string{
			printable(w.Name), w.kindText(), strconv.FormatInt(w.waiters(), 10),
			fmt.Sprintf("%.0f%%", 100*w.Held), fmt.Sprintf("%.1f", w.Changes), left(w.TTL), w.heldFor(), whoHolds(&w.Lock),
		})
	}
	fit(rows, width, 0, 7)
	_ = table(&text, rows) // a strings.Builder does not fail
	return strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
}

// scriptCalls adds up the runs of scripts in INFO commandstats.
func scriptCalls(stats map[string]string) (sum int64) {
	for _, cmd := range []string{"eval", "evalsha", "fcall"} {
		rest, _ := strings.CutPrefix(stats["cmdstat_"+cmd], "calls=")
		number, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.ParseInt(number, 10, 64)
		sum += n
	}
	return sum
}

// next is the order that follows.
func next(order string) string {
	return orderNames[(slices.Index(orderNames, order)+1)%len(orderNames)]
}
