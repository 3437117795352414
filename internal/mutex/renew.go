package mutex

import (
	"strconv"
	"time"

	"relock/internal/kind"
	"relock/internal/script"
)

// Extend is extend.lua.
func (p *Primitive) Extend(op *kind.Op) script.Command {
	keys, ends := p.names.Keys[:], time.Duration(0)
	if op.ByIDs || op.ID != "" {
		keys = p.withIDs(keys)
	}
	if p.Ends > 0 && !op.FewestKeys {
		keys, ends = p.withToken(keys), p.Ends
	}
	args := []string{op.Owner, script.Millis(op.Lease), script.Flag(op.Private), script.Flag(op.Away),
		op.ID, strconv.Itoa(len(op.Void)), script.Millis(ends)}
	return script.Command{
		Script: extendScript, Keys: keys, Args: append(append(args, op.Void...), op.IDs...),
	}
}

// Renew is renew.lua, or renew_fenced.lua: it names the lock and, if there are some, the ids that go along with it,
// and a fencing token that has an end.
func (p *Primitive) Renew(op *kind.Op) script.Command {
	cmd := script.Command{Script: renewScript, Keys: p.names.Keys[:], Args: []string{op.Owner}}
	if p.Ends > 0 {
		cmd.Script, cmd.Args[0] = renewFencedScript, "="+op.Owner
	}
	if op.ByIDs && !op.FewestKeys {
		cmd.Keys, cmd.Args = p.withIDs(cmd.Keys), append(cmd.Args, "")
	}
	if p.Ends > 0 && !op.FewestKeys {
		cmd.Keys, cmd.Args = p.withToken(cmd.Keys), append(cmd.Args, script.Millis(p.Ends))
	}
	return cmd
}
