package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/idgen"
	"relock/semaphore"
)

// process is what a session says of itself.
type process struct {
	Label   string    `json:"label"`
	Started time.Time `json:"started"`
	Version string    `json:"version"`
	Lease   int64     `json:"lease_ms"` // of its locks, but for fixed ones
}

// parseProcess reads what a session has written, or returns nil.
func parseProcess(text string) *process {
	var p struct {
		Label   string
		Started int64 // Unix milliseconds
		Version string
		Lease   int64 // milliseconds
	}
	if json.Unmarshal([]byte(text), &p) != nil || p.Label == "" {
		return nil
	}
	return &process{p.Label, time.UnixMilli(p.Started).UTC(), p.Version, p.Lease}
}

// sessionPrefix begins the name of a session's own channel, and that of the key under which it
// says who it is.
const sessionPrefix = "relock_session:"

// labels are what is known of sessions.
type labels struct {
	processes map[string]*process // by session id; nil for a session without a label
	marked    map[string]string   // session ids by the mark of their permits; "" if two have it
}

// forget drops what was read, so that processes which have ended since are not shown.
func (k *labels) forget() { *k = labels{} }

// of returns who an owner is, or nil: a named owner, a Redisson client, a session that has
// ended, or one that may not write its label.
func (k *labels) of(o Owner) *process { return k.processes[k.session(o)] }

// session returns the id of the session that an owner belongs to, or "".
func (k *labels) session(o Owner) string {
	if o.mark != "" {
		return k.marked[o.mark]
	}
	id, _ := idgen.SessionOfPermit(o.ID)
	return id
}

// load reads the labels of the owners' sessions that are not known yet, each once.
func (k *labels) load(ctx context.Context, client rueidis.Client, owners []Owner) {
	if k.processes == nil {
		k.processes = map[string]*process{}
	}
	if k.marked == nil && slices.ContainsFunc(owners, func(o Owner) bool { return o.mark != "" }) {
		k.findSessions(ctx, client)
	}
	var ids []string
	var cmds rueidis.Commands
	for _, o := range owners {
		id := k.session(o)
		if _, known := k.processes[id]; id == "" || known {
			continue
		}
		k.processes[id] = nil
		ids = append(ids, id)
		cmds = append(cmds, client.B().Get().Key(sessionPrefix+id).Build())
	}
	if len(cmds) == 0 {
		return
	}
	for i, r := range client.DoMulti(ctx, cmds...) {
		if text, err := r.ToString(); err == nil {
			k.processes[ids[i]] = parseProcess(text)
		}
	}
}

// findSessions asks all nodes which sessions listen on their own channels: an owner of permits
// says of its session no more than a mark. Where asking is refused no owner is known.
func (k *labels) findSessions(ctx context.Context, client rueidis.Client) {
	k.marked = map[string]string{}
	var mu sync.Mutex
	_ = onNodes(nodes(client), func(_ int, n node) error {
		channels, err := n.Do(ctx, n.B().PubsubChannels().Pattern(sessionPrefix+"*").Build()).AsStrSlice()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range channels {
			id := strings.TrimPrefix(c, sessionPrefix)
			mark := idgen.PermitMark(id)
			if other, taken := k.marked[mark]; taken && other != id {
				id = "" // it may be either
			}
			k.marked[mark] = id
		}
		return err
	})
}

// permitOwner returns as whose a permit is shown, and the mark of the session: a permit of this
// library belongs to the acquisition that it came with. One with a random id, as Redisson's, is
// shown by that id as Java has it, and has no mark.
func permitOwner(id string) (owner, mark string) {
	mark, part, number, ok := idgen.SplitPermit(id)
	if !ok || number >= semaphore.MaxAtOnce {
		return hex.EncodeToString([]byte(id)), ""
	}
	return hex.EncodeToString([]byte(part)), mark
}

// age returns how long the process has been running at a time of Redis, for people.
func (p *process) age(now int64) string {
	return max(0, time.UnixMilli(now).Sub(p.Started)).Truncate(time.Second).String()
}

// printable replaces what would control a terminal: names and labels are other people's. A byte that is no letter may do
// so too, where a terminal takes each for one.
func printable(s string) string {
	return control.ReplaceAllString(strings.ToValidUTF8(s, "·"), "·")
}

var control = regexp.MustCompile(`[\x00-\x1f\x7f-\x{9f}]`)
