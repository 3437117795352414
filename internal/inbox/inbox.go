// Package inbox has what sessions tell each other: each session listens to a channel of its own. Each text there is made
// and parsed in one place:
//
//	granted:…, called:…  is made by line.lua of package script, and parsed by package waiting
//	lost:…, wanted:…     is a Note, which scripts make too
//	deadlock:…           is of package deadlock
//	nothing              is a Question
package inbox

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/life"
)

// Prefix is what the name of a session's own channel begins with; its id follows.
const Prefix = "relock_session:"

// Tell sends a message to one session.
func Tell(ctx context.Context, client rueidis.Client, session, message string) error {
	return client.Do(ctx, client.B().Publish().Channel(Prefix+session).Message(message).Build()).Error()
}

// broadcastTimeout bounds TellAll: a node that is dead has no sessions to tell.
const broadcastTimeout = time.Second

// TellAll sends a message to every session, whichever node it listens at, with a few commands to
// each. It waits for a second at most, and calls failed with the error of each node that has said
// no by then. What is still under way counts in background.
func TellAll(ctx context.Context, client rueidis.Client, background *life.Group, message string, failed func(error)) {
	ctx, cancel := context.WithTimeout(ctx, broadcastTimeout)
	defer cancel()
	nodes := client.Nodes()
	told := make(chan error, len(nodes))
	for _, node := range nodes {
		background.Go(func() { told <- tellNode(ctx, node, message) })
	}
	for range nodes {
		select {
		case err := <-told:
			if err != nil {
				failed(err)
			}
		case <-ctx.Done(): // rueidis may take longer than that to give up on a node
			return
		}
	}
}

// tellNode sends a message to the sessions that listen at one node.
func tellNode(ctx context.Context, node rueidis.Client, message string) error {
	// Not by its own builder: rueidis would repeat a read until ctx ends.
	channels, err := node.Do(ctx, node.B().Arbitrary("PUBSUB", "CHANNELS", Prefix+"*").Build()).AsStrSlice()
	if err != nil || len(channels) == 0 {
		return err
	}
	cmds := make(rueidis.Commands, len(channels))
	for i, c := range channels {
		cmds[i] = node.B().Publish().Channel(c).Message(message).Build()
	}
	var errs error
	for _, r := range node.DoMulti(ctx, cmds...) {
		errs = errors.Join(errs, r.Error())
	}
	return errs
}

// Field is a part of a text, which may have any bytes: "<length>:<bytes>".
func Field(s string) string { return strconv.Itoa(len(s)) + ":" + s }

// CutField takes the Field off with which a text begins.
func CutField(text string) (s, rest string, ok bool) {
	length, rest, ok := strings.Cut(text, ":")
	n, err := strconv.ParseUint(length, 10, 32)
	if !ok || err != nil || n > uint64(len(rest)) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}

// A Note is a message about the hold that an owner has of the lock of a key. Its text is "<Kind>:", the Field of the
// owner, and the key.
type Note struct {
	Kind       string // Lost or Wanted
	Owner, Key string
}

const (
	Lost   = "lost"   // the owner was forced out of the lock; force_unlock.lua says it too
	Wanted = "wanted" // others wait for the lock, which the owner's session may keep; wanted.lua says it too
)

// String is the text of the message.
func (n Note) String() string { return n.Kind + ":" + Field(n.Owner) + n.Key }

// ParseNote is the opposite of String.
func ParseNote(text string) (n Note, ok bool) {
	kind, rest, _ := strings.Cut(text, ":")
	owner, key, ok := CutField(rest)
	if kind != Lost && kind != Wanted || !ok {
		return Note{}, false
	}
	return Note{kind, owner, key}, true
}
