// Package inbox has what sessions tell each other: each session listens to a channel of its own.
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

// A Revocation is the message that an owner was forced out of the lock of a key. Its text is
// "lost:<length of owner>:<owner><key>"; force_unlock.lua makes it too.
type Revocation struct{ Owner, Key string }

// String is the text of the message.
func (r Revocation) String() string { return ofOwner("lost:", r.Owner, r.Key) }

// ParseRevocation is the opposite of String.
func ParseRevocation(text string) (r Revocation, ok bool) {
	r.Owner, r.Key, ok = parseOfOwner("lost:", text)
	return r, ok
}

// A Wanted is the message that others wait for the lock of a key, which the session of the owner may keep. Its text is
// "wanted:<length of owner>:<owner><key>"; wanted.lua makes it too.
type Wanted struct{ Owner, Key string }

// String is the text of the message.
func (w Wanted) String() string { return ofOwner("wanted:", w.Owner, w.Key) }

// ParseWanted is the opposite of String.
func ParseWanted(text string) (w Wanted, ok bool) {
	w.Owner, w.Key, ok = parseOfOwner("wanted:", text)
	return w, ok
}

// ofOwner makes the text of a message that is about the hold of an owner.
func ofOwner(begins, owner, key string) string {
	return begins + strconv.Itoa(len(owner)) + ":" + owner + key
}

// parseOfOwner is the opposite.
func parseOfOwner(begins, text string) (owner, key string, ok bool) {
	rest, ok := strings.CutPrefix(text, begins)
	length, rest, ok2 := strings.Cut(rest, ":")
	n, err := strconv.Atoi(length)
	if !ok || !ok2 || err != nil || n < 0 || n > len(rest) {
		return "", "", false
	}
	return rest[:n], rest[n:], true
}
