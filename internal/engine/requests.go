package engine

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/idgen"
	"relock/internal/lockerr"
	"relock/internal/script"
)

// RequestClient returns what tells the requests of this session from those of others.
func (s *Session) RequestClient() string { return s.requests.Client }

// RequestMemory is for how long after its last use Redis keeps the requests of a session: while
// one is sent again, while it is taken back, which is tried for as long, and as long again for
// copies that come late.
func (s *Session) RequestMemory() time.Duration {
	return max(3*Memory, s.cfg.ReleaseTimeout+Memory)
}

// CallOnce is [Handle.Call] for a script that remembers requests: cmd is given the id of one.
func (h *Handle) CallOnce(ctx context.Context, op string, cmd func(id string) script.Command, decode func(rueidis.RedisResult) error) error {
	if h.err != nil {
		return lockerr.Wrap(op, h.names.Name(), h.err)
	}
	id := h.s.requests.Begin()
	defer h.s.requests.End(id)
	return h.Call(ctx, op, cmd(id), decode)
}

// forget ends the request of a claim without a lease: its outcome is known, or was taken back.
// The lock's mutex must be held, unless the claim is over.
func (c *claim) forget() {
	if c.prim.Kind().Unleased {
		c.lock.s.requests.End(c.firstID())
	}
}

// newID returns the id of a hold, or of a request for what is not leased.
func (s *Session) newID(k *Kind) string {
	if k.Unleased {
		return s.requests.Begin()
	}
	return idgen.Request()
}
