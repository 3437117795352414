package mutex

import (
	"strconv"
	"strings"

	"relock/internal/inbox"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/waiting"
)

// Acquire is acquire.lua.
func (p *Primitive) Acquire(op *kind.Op) script.Command {
	if op.Run != nil || op.Line.Head == kind.InTurn || op.Line.Head == kind.Reenter {
		return p.acquireFair(op)
	}
	keys := p.names.Keys[:]
	inLine, head := op.Line.Head != "" || op.Line.Session != "", op.Line.Head
	if op.Line.Session != "" {
		head = "b"
	}
	if inLine {
		keys = p.keys[:]
	}
	if op.ID != "" || op.Tokens > 0 || p.Ends > 0 {
		keys = p.helpers(keys, op)
	}
	args := append(make([]string, 0, 6), op.Owner, script.Millis(op.Lease))
	again := inLine && (op.Line.Session != "" || op.Line.Again || op.Line.Listens || op.Line.Waiting > 0 || op.Line.Tells)
	rest := again || op.ID != "" || op.Tokens > 0 || p.Ends > 0 // else it says nothing
	if inLine || rest {
		args = append(args, head)
	}
	if rest {
		args = append(args, strconv.Itoa(op.Tokens), strconv.Itoa(op.Held), op.ID)
	}
	switch {
	case p.Ends > 0:
		args = append(args, script.Millis(p.Ends))
	case again:
		args = append(args, "")
	}
	if again {
		args = append(args, script.Flag(op.Line.Again), script.Flag(op.Line.Listens),
			p.channel, p.names.Publish, p.names.Counts, inbox.Prefix, strconv.Itoa(op.Line.Waiting))
	}
	switch {
	case op.Line.Session != "":
		args = append(args, op.Line.Session, script.Millis(op.Line.ComesIn), script.Millis(op.Line.Window))
	case op.Line.Tells:
		args = append(args, "1")
	}
	cmd := script.Command{Script: acquireScript, Keys: keys, Args: args}
	if inLine {
		cmd.Fewer = func(c script.Command) script.Command { return withoutLine(c, 2, 0) }
	}
	return cmd
}

// helpers appends the helper keys that an acquisition needs to others.
func (p *Primitive) helpers(keys []string, op *kind.Op) []string {
	if op.ID != "" {
		keys = p.withIDs(keys)
	}
	if op.Tokens > 0 || p.Ends > 0 {
		keys = p.withToken(keys)
	}
	return keys
}

// acquireFair is acquire.lua for a caller of a fair lock: one that stands in the line, or does not wait. Where
// Redis does not serve lock and line together it waits until it does, for it must not overtake.
func (p *Primitive) acquireFair(op *kind.Op) script.Command {
	head, tokens, ends := op.Line.Head, "", ""
	at := op.Run
	if at != nil {
		head = strings.TrimSuffix(at.Entry, op.Owner)
	} else {
		at = new(waiting.RunAttempt)
	}
	if op.Tokens > 0 || op.ID != "" || p.Ends > 0 || head == kind.Reenter {
		tokens = strconv.Itoa(op.Tokens)
	}
	if p.Ends > 0 {
		ends = script.Millis(p.Ends)
	}
	args := []string{op.Owner, script.Millis(op.Lease), head, tokens, strconv.Itoa(op.Held), op.ID, ends,
		script.Flag(op.Run == nil || at.Again), "0", p.channel, p.names.Publish, p.names.Counts, inbox.Prefix}
	if op.Run != nil {
		waiting := at.Waiting
		if waiting == 1 && !at.Again {
			waiting = 0 // one is what Redis takes it to be
		}
		args = append(args, strconv.Itoa(waiting), at.Join, script.Itoa(at.Last), script.Itoa(at.Before), strconv.Itoa(at.Joined), script.Flag(op.Line.Tells))
	}
	return script.Command{Script: acquireScript, Keys: p.helpers(p.keys[:], op), Args: args}
}

// Look is look.lua.
func (p *Primitive) Look(entries []string) script.Command {
	keys := p.keys[:]
	if p.Fenced {
		keys = p.withToken(keys)
	}
	args := []string{p.channel, p.names.Publish, p.names.Counts, inbox.Prefix, script.Flag(p.Fenced)}
	return script.Command{Script: lookScript, Keys: keys, Args: append(args, entries...)}
}

// Entry is how an entry begins: where the fencing tokens have an end, another's release cannot see to that, and so
// the session is called, and asks.
func (p *Primitive) Entry(head string) string {
	switch {
	case p.Ends == 0 || head == "":
	case strings.Contains("gz", head[:1]):
		return "a" + head[1:]
	case head[0] == 'd':
		return "e001" + head[4:]
	case strings.Contains("fh", head[:1]):
		return "e000" + head[4:]
	}
	return head
}
