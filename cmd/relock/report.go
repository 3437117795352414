package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
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
		fmt.Fprintf(patient{}, "relock: %s: %s%s\n", printable(r.name), what, text)
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
	fmt.Fprintf(patient{}, "relock: %s: %s\n", printable(r.name), text)
}

// line writes one JSON object.
func (r reporter) line(what string, more ...any) {
	fields := map[string]any{"event": what, "name": r.name}
	for i := 0; i+1 < len(more); i += 2 {
		fields[more[i].(string)] = more[i+1]
	}
	_ = json.NewEncoder(patient{}).Encode(fields)
}

// A patient writes to standard error, and waits for a line no longer than writePatience: it may be a pipe that is full
// and that nobody reads, and a run must go on, to end its command when the lock is lost.
type patient struct{}

const writePatience = time.Second

// writing is full while a line is being written. Those that come behind one that stays under way are dropped.
var writing = make(chan struct{}, 1)

func (patient) Write(line []byte) (int, error) {
	timer := time.NewTimer(writePatience)
	defer timer.Stop()
	select {
	case writing <- struct{}{}:
	case <-timer.C:
		return len(line), nil
	}
	text, written := bytes.Clone(line), make(chan struct{})
	go func() {
		defer close(written)
		_, _ = os.Stderr.Write(text)
		<-writing
	}()
	select {
	case <-written:
	case <-timer.C:
	}
	return len(line), nil
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
		w = patient{}
	}
	if r.json {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return slog.New(slog.NewTextHandler(w, nil))
}
