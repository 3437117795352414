package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"relock/internal/kind"
	"relock/internal/script"
)

// Entries that stay behind in the line. While a slot moves Redis may serve its keys one by one only: then scripts name
// the lock alone, and an entry stays in the line although its caller has left, or has got the lock. A release
// would give the lock to it later, which costs the others a moment while the session is open, and a grant's lease
// once it has closed. So the clean-up takes such an entry out as soon as Redis serves lock and line together.

// notePart has cmd note that it was sent without the line.
func notePart(cmd *script.Command) *atomic.Bool {
	parted := new(atomic.Bool)
	cmd.Parted = func() { parted.Store(true) }
	return parted
}

// wholly has a command that takes the entry of a claim out of the line sent once more, by itself, if it goes
// without the line.
func (c *claim) wholly(cmd script.Command, until time.Duration) script.Command {
	if cmd.Fewer == nil {
		return cmd
	}
	whole, s := cmd, c.lock.s
	whole.Fewer = nil
	cmd.Parted = sync.OnceFunc(func() { s.cleanup.AddSpare(whole, until+entryPatience) })
	return cmd
}

// takeOut takes the entry out of the line of a claim that got the lock by a command without the line's key, since the slot
// was moving. The claim is over, or is left standing. Of a named owner nothing else goes: it may hold the lock again.
func (c *claim) takeOut(head string) {
	cmd := c.prim.(kind.Liner).Dismiss(*c.prim.Names(), head, c.ownerID(), c.num != 0 && c.state == finished)
	cmd.Fewer = nil
	c.lock.s.cleanup.AddSpare(cmd, c.latestEnd(c.lock.s.now())+entryPatience)
}
