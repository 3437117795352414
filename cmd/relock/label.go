package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// process is what a session says of itself.
type process struct {
	Label   string `json:"label"`
	Started int64  `json:"started"` // Unix milliseconds
	Version string `json:"version"`
}

// labels are those that are known by session id; nil for a session without one.
type labels map[string]*process

// labelKey is the key under which a session says who it is.
const labelKey = "relock_session:"

// forget drops what was read, so that processes which have ended since are not shown.
func (l labels) forget() { clear(l) }

// of returns who an owner is, or nil: a named owner, a Redisson client, a session that has
// ended, or one that may not write its label.
func (l labels) of(owner string) *process {
	return l[sessionOf(owner)]
}

// sessionOf returns the session of a private owner, which is "<session id>:<number>", or "".
func sessionOf(owner string) string {
	if i := strings.LastIndexByte(owner, ':'); i > 0 {
		return owner[:i]
	}
	return ""
}

// load reads the labels of owners' sessions that are not known yet, each once.
func (l labels) load(ctx context.Context, client rueidis.Client, owners []string) {
	var ids []string
	var cmds rueidis.Commands
	for _, owner := range owners {
		id := sessionOf(owner)
		if _, known := l[id]; id == "" || known {
			continue
		}
		l[id] = nil
		ids = append(ids, id)
		cmds = append(cmds, client.B().Get().Key(labelKey+id).Build())
	}
	if len(cmds) == 0 {
		return
	}
	for i, r := range client.DoMulti(ctx, cmds...) {
		text, err := r.ToString()
		var p process
		if err == nil && json.Unmarshal([]byte(text), &p) == nil && p.Label != "" {
			l[ids[i]] = &p
		}
	}
}

// age returns how long the process has been running, for people.
func (p *process) age() string {
	return time.Since(time.UnixMilli(p.Started)).Truncate(time.Second).String()
}

// printable replaces what would control a terminal: names and labels are other people's.
func printable(s string) string { return control.ReplaceAllString(s, "·") }

var control = regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}]`)
