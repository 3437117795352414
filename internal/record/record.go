// Package record has the key that says in Redis who a session is, for operators, for as long as
// the session lives.
package record

import (
	"context"
	"embed"
	"encoding/json"
	"runtime/debug"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

//go:embed lua/*.lua
var scripts embed.FS

var recordScript = script.Load(scripts, "lua/record.lua")

// A Record is that of one session.
type Record struct {
	Key           string
	before, after string // what stands in it beside the time when the session began
	ttl           time.Duration
	started       string // by Redis's clock; "" as long as it was not written
}

// leastTTL is for how long a record outlives its process at least. It is written again every
// third of it, which is a fraction of a percent of what an idle session sends.
const leastTTL = 3 * time.Minute

// New returns a record that has not been written yet, of a session whose locks have that lease.
func New(key, label string, lease time.Duration) *Record {
	quoted, _ := json.Marshal(label) // of strings: it cannot fail
	number, _ := json.Marshal(version())
	return &Record{
		Key:    key,
		before: `{"label":` + string(quoted) + `,"started":`, after: `,"version":` + string(number) + `}`,
		ttl: max(leastTTL, 3*lease),
	}
}

// Every is how often the record is to be written.
func (r *Record) Every() time.Duration { return r.ttl / 3 }

// Write is the command that writes the record for the first time.
func (r *Record) Write() script.Command {
	return script.Command{Script: recordScript, Keys: []string{r.Key}, Args: []string{r.before, r.after, script.Millis(r.ttl)}}
}

// Wrote takes in the answer to Write. It must be called before the methods below.
func (r *Record) Wrote(reply rueidis.RedisResult) error {
	started, err := reply.ToString()
	if err == nil {
		r.started = started // of an error too the client returns a text
	}
	return err
}

// Written reports whether Redis has said that it was written.
func (r *Record) Written() bool { return r.started != "" }

// Rewrite writes it again.
func (r *Record) Rewrite(ctx context.Context, client rueidis.Client) error {
	return client.Do(ctx, client.B().Set().Key(r.Key).Value(r.before+r.started+r.after).Px(r.ttl).Build()).Error()
}

// Delete deletes it.
func (r *Record) Delete(ctx context.Context, client rueidis.Client) error {
	return client.Do(ctx, client.B().Del().Key(r.Key).Build()).Error()
}

// version returns the version of this module, as far as the program knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == "relock" && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
}
