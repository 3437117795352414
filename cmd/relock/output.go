package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// writeJSON prints v as one indented document.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows in columns. The first one is the heading.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, columnGap, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(t, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// count prints a number and what it is of.
func count[N int | int64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// who prints an owner: the label of its process, or else its id.
func who(o Owner) string {
	if o.Process != nil {
		return printable(o.Process.Label)
	}
	return printable(o.ID)
}

// mostOfValue is how much of a leader's value a table has.
const mostOfValue = 60

// mayBeKept is said of an owner whose session may hold the lock without being inside.
const mayBeKept = "may be kept"

// whoHolds prints a lock's owners in one cell, of an election with the leader's value.
func whoHolds(l *Lock) string {
	if len(l.Owner) == 0 {
		return "-"
	}
	text := who(l.Owner[0])
	if l.Count > 1 {
		text += fmt.Sprintf(" and %d more", l.Count-1)
	}
	if l.Leader != nil {
		text += " (" + shortened(printable(l.Leader.Value), mostOfValue) + ")"
	}
	if l.Owner[0].Kept {
		text += " (" + mayBeKept + ")"
	}
	return text
}

// holds is how often the owners that were read hold the lock, all together.
func (l *Lock) holds() (n int64) {
	for _, o := range l.Owner {
		n += o.Holds
	}
	return n
}

// kindText prints what kind of lock it is, as far as the sample can tell.
func (l *Lock) kindText() string {
	switch {
	case l.Kind == kindRW && l.Mode != "":
		return kindRW + " (" + l.Mode + ")"
	case l.Kind == kindMutex && l.Fair:
		return kindMutex + " (fair)"
	case l.Kind == kindLatch && l.Left != nil:
		return fmt.Sprintf("%s (%d left)", kindLatch, *l.Left)
	case l.Kind == "":
		return "-"
	}
	return l.Kind
}
