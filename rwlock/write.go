package rwlock

import (
	"fmt"
	"strconv"
	"strings"

	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/waiting"
)

// writeKind is that of writers: one is alone, and those that wait stand in a line.
var writeKind = kind.Kind{Family: "rw", Name: "write", Side: 1, Exclusive: true, HandsOver: true,
	Lines: true, Writes: true, Sort: waiting.OfWriters}

// writeSide is the primitive of writers.
type writeSide struct{ *names }

var _ interface {
	kind.Leaver
	kind.Blocker
	kind.Refuser
	kind.Liner
} = (*writeSide)(nil)

// Kind is that of writers.
func (*writeSide) Kind() *kind.Kind { return &writeKind }

// Acquire is acquire_write.lua. The mark of a writer that waits is good for twice the time
// after which that looks again, so it is never over before.
func (w *writeSide) Acquire(op *kind.Op) script.Command {
	mark := "0"
	if op.Wait {
		mark = script.Millis(2 * w.pollFloor)
	}
	keys := w.keys(1)
	if op.ID != "" {
		keys = append(keys, w.ids(op.Owner))
	}
	args := []string{op.Owner, script.Millis(op.Lease), op.ID, mark, w.timeout()}
	l := &op.Line
	if l.Head == "" && l.Session == "" {
		args = heldArgs(args, op)
	} else {
		args = append(args, script.Itoa(int64(op.Held)), script.Itoa(int64(op.Other)), op.First)
	}
	switch {
	case l.Session != "":
		args = append(args, "b", l.Session, script.Millis(l.ComesIn), script.Millis(l.Window))
	case l.Head != "":
		args = append(args, writerEntry(l.Head), script.Flag(l.Again), script.Flag(l.Listens), strconv.Itoa(l.Waiting),
			w.Channel(), w.lock.Publish, w.lock.Counts, inbox.Prefix, script.Flag(l.Tells))
	}
	return script.Command{Script: acquireWriteScript, Keys: keys, Args: args}
}

// Entry is how an entry begins.
func (*writeSide) Entry(head string) string { return writerEntry(head) }

// writerEntries are the letters of a writer's entry, by those of a plain lock's.
var writerEntries = strings.NewReplacer("g", "V", "z", "U", "a", "W", "n", "N")

func writerEntry(head string) string {
	if head == "" {
		return ""
	}
	return writerEntries.Replace(head[:1]) + head[1:]
}

// Dismiss gives back what an entry was given, or takes it out of the line.
func (*writeSide) Dismiss(n keyname.Names, head, owner string, given bool) script.Command {
	_, w := newSides(n, 0)
	return w.Release(&kind.Op{Owner: owner, All: given, Private: given, Line: kind.Line{Head: head}})
}

// Never is what acquire_write.lua refuses for good.
func (*writeSide) Never(code int64) error {
	if code != 1 {
		return fmt.Errorf("%w: refused with code %d", script.ErrShape, code)
	}
	return fmt.Errorf("%w: unlock it first, or take the write side first and then the read side", ErrUpgrade)
}

// Blockers are the readers and the writer.
func (w *writeSide) Blockers(fields map[string]string) (owners []string) {
	for field := range fields {
		if field != "mode" {
			owners = append(owners, strings.TrimSuffix(field, ":write"))
		}
	}
	return owners
}

// Release is release_write.lua.
func (w *writeSide) Release(op *kind.Op) script.Command {
	at := &op.Line
	return w.release(releaseWriteScript, op, 1,
		writerEntry(at.Head), at.Enter, script.Flag(at.Listens), strconv.Itoa(at.Waiting))
}

// Leave is leave_write.lua.
func (w *writeSide) Leave(op *kind.Op) script.Command {
	keys := w.keys(1)
	if op.ByIDs || !op.Private {
		keys = append(keys, w.ids(op.Owner))
	}
	args := []string{op.Owner, script.Millis(op.Lease), w.whose(op), w.Channel(), w.lock.Publish, inbox.Prefix}
	if !op.Private {
		args = append(args, op.Ends...)
	}
	return script.Command{Script: leaveWriteScript, Keys: keys, Args: args}
}

// Extend is extend.lua.
func (w *writeSide) Extend(op *kind.Op) script.Command { return w.extend(op, "w", 0) }

// Renew is renew.lua: it names the lock and the ids that go along with it.
func (w *writeSide) Renew(op *kind.Op) script.Command {
	keys := w.lock.Keys[:]
	if op.ByIDs {
		keys = []string{w.lock.Key(), w.ids(op.Owner)}
	}
	return script.Command{Script: renewScript, Keys: keys, Args: []string{"w" + script.Itoa(int64(len(keys))) + ":" + op.Owner + ":write"}}
}
