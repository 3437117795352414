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

// RenewScript is renew.lua, or renew_fenced.lua.
func (p *Primitive) RenewScript() *script.Script {
	if p.Ends > 0 {
		return renewFencedScript
	}
	return renewScript
}

// RenewArgs are the lock and, if there are some, the ids that go along with it, and a fencing
// token that has an end.
func (p *Primitive) RenewArgs(op *kind.Op) (keys, args []string) {
	keys, args = p.names.Keys[:], []string{op.Owner}
	if p.Ends > 0 {
		args[0] = "=" + op.Owner
	}
	if op.ByIDs && !op.FewestKeys {
		keys, args = p.withIDs(keys), append(args, "")
	}
	if p.Ends > 0 && !op.FewestKeys {
		keys, args = p.withToken(keys), append(args, script.Millis(p.Ends))
	}
	return keys, args
}
