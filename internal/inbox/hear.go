package inbox

import (
	"log/slog"
	"strings"

	"relock/pubsub"
)

// The Handlers are what a session does with the messages on its own channel. They must not block, nor
// run code of the caller's. All must be set.
type Handlers struct {
	Missed   func()                     // messages may have been missed
	Line     func(payload string) bool  // reports whether the message is to an entry in the line of a lock
	Deadlock func(payload string) error // begins with Deadlock
	Revoked  func(owner, key string)
	Wanted   func(owner, key string) // another session asks for a lock that this one may keep
	Log      *slog.Logger            // hears of what makes no sense
}

// Deadlock is what each message begins with that package deadlock makes and reads.
const Deadlock = "deadlock:"

// Hear takes a message.
func (h *Handlers) Hear(m pubsub.Message) {
	switch {
	case m.Missed:
		h.Missed()
	case m.Payload == Question || h.Line(m.Payload):
	case strings.HasPrefix(m.Payload, Deadlock):
		if err := h.Deadlock(m.Payload); err != nil {
			h.Log.Warn("relock: bad message on the session's channel", "error", err)
		}
	default:
		switch n, ok := ParseNote(m.Payload); {
		case !ok:
			h.Log.Warn("relock: unknown message on the session's channel", "payload", m.Payload)
		case n.Kind == Wanted:
			h.Wanted(n.Owner, n.Key)
		default:
			h.Revoked(n.Owner, n.Key)
		}
	}
}
