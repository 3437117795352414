package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
)

// A reporter tells on standard error what run does. Standard output is the command's own.
type reporter struct {
	json, verbose bool
	name          string
}

// event tells of what is as it should be: with --verbose, or as JSON.
func (r reporter) event(what string, more ...any) {
	if r.json {
		r.line(what, more...)
		return
	}
	if r.verbose {
		text := ""
		for i := 0; i+1 < len(more); i += 2 {
			text += fmt.Sprintf(" %v=%v", more[i], more[i+1])
		}
		fmt.Fprintf(os.Stderr, "relock: %s: %s%s\n", printable(r.name), what, text)
	}
}

// problem tells of what is not.
func (r reporter) problem(what, text string, err error) {
	if err != nil {
		text += ": " + err.Error()
	}
	if r.json {
		r.line(what, "message", text)
		return
	}
	fmt.Fprintf(os.Stderr, "relock: %s: %s\n", printable(r.name), text)
}

// line writes one JSON object.
func (r reporter) line(what string, more ...any) {
	fields := map[string]any{"event": what, "name": r.name}
	for i := 0; i+1 < len(more); i += 2 {
		fields[more[i].(string)] = more[i+1]
	}
	_ = json.NewEncoder(os.Stderr).Encode(fields)
}

// note says on standard error what is missing from what is printed.
func (g *global) note(text string) {
	if g.json {
		_ = json.NewEncoder(os.Stderr).Encode(map[string]any{"note": text})
		return
	}
	fmt.Fprintf(os.Stderr, "relock: %s\n", text)
}

// logger is for what the session has to say: with --verbose only, since run reports what
// matters itself.
func (r reporter) logger() *slog.Logger {
	var w io.Writer = io.Discard
	if r.verbose {
		w = os.Stderr
	}
	if r.json {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}
