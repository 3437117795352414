package engine

import (
	"relock/internal/idgen"
)

// Requests returns the session's requests for what is not leased.
func (s *Session) Requests() *idgen.Requests { return &s.requests }

// endRequest ends the request of a claim without a lease: its outcome is known, or was taken back.
// The lock's mutex must be held, unless the claim is over.
func (c *claim) endRequest() {
	if c.kind.Unleased {
		c.lock.s.requests.End(c.account.FirstID(c.kind))
	}
}

// newID returns the id of a hold, or of a request for what is not leased.
func (s *Session) newID(k *Kind) string {
	if k.Unleased {
		return s.requests.Begin()
	}
	return idgen.Request()
}
