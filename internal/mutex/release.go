package mutex

import (
	"slices"
	"strconv"
	"time"

	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/script"
)

// Release is release.lua.
func (p *Primitive) Release(op *kind.Op) script.Command {
	keys, counts, prefix := p.names.Keys[:], p.names.Counts, ""
	if op.Line.Named {
		keys, prefix = p.keys[:], inbox.Prefix
	}
	byIDs := op.ByIDs || !op.All
	if byIDs {
		keys = p.withIDs(keys)
	}
	tokens := p.Fenced && op.Line.Named
	if tokens {
		keys = p.withToken(keys)
	}
	args := []string{op.Owner, p.channel, p.names.Publish, counts, prefix}
	if l := &op.Line; byIDs || tokens || op.Run != nil || l.Head != "" || l.Enter != "" || l.Listens {
		args = append(args, script.Flag(byIDs), script.Flag(tokens), l.Head, l.Enter, script.Flag(l.Listens), strconv.Itoa(l.Waiting))
	} else if l.Others {
		args = append(args, "0")
	}
	switch at := op.Run; {
	case at != nil:
		args = append(args, script.Itoa(at.Before), script.Itoa(at.Last))
	case !op.All:
		args = append(args, "", "")
	}
	if !op.All {
		args = append(args, script.Millis(op.Keep), script.Flag(op.Private), strconv.Itoa(len(op.Ends)))
		args = append(append(args, op.Ends...), op.IDs...)
	}
	cmd := script.Command{Script: releaseScript, Keys: keys, Args: args}
	if op.Line.Named {
		cmd.Fewer = releaseWithoutLine
	}
	return cmd
}

// releaseWithoutLine is a release script call that names neither line nor tokens.
func releaseWithoutLine(c script.Command) script.Command {
	if c = withoutLine(c, 4, 6); c.Args[2] == "SPUBLISH" { // those who wait at the other node hear it too
		c.Args[3] = "b"
	}
	return c
}

// withoutLine is a script call that does not name the line, which the argument at line says that there is; nor the tokens,
// if the argument at tokens says that there are some.
func withoutLine(c script.Command, line, tokens int) script.Command {
	c.Keys = slices.Delete(slices.Clone(c.Keys), 1, 2)
	c.Args = slices.Clone(c.Args)
	c.Args[line], c.Fewer = "", nil
	if tokens > 0 && len(c.Args) > tokens && c.Args[tokens] != "0" {
		c.Keys, c.Args[tokens] = c.Keys[:len(c.Keys)-1], "0"
	}
	return c
}

// Dismiss releases what an entry of this session was given, or takes it out of the line.
func (*Primitive) Dismiss(n keyname.Names, head, owner string, given bool) script.Command {
	// One that was not given the lock may have it by now: that is not touched.
	return New(n, Fencing{}).Release(&kind.Op{Owner: owner, All: given, Private: given, Line: kind.Line{Named: true, Head: head}})
}

// Leave is leave.lua.
func (p *Primitive) Leave(op *kind.Op) script.Command {
	keys, ends, byIDs := p.keys[:], time.Duration(0), op.ByIDs || !op.Private
	if byIDs {
		keys = p.withIDs(keys)
	}
	if p.Ends > 0 {
		keys, ends = p.withToken(keys), p.Ends
	}
	args := []string{op.Owner, script.Millis(op.Lease), script.Flag(op.Private), script.Flag(byIDs), script.Millis(ends),
		p.channel, p.names.Publish, inbox.Prefix}
	if !op.Private {
		args = append(args, op.Ends...)
	}
	return script.Command{Script: leaveScript, Keys: keys, Args: args,
		Fewer: func(c script.Command) script.Command { return withoutLine(c, 7, 4) }}
}
