package deadlock

import (
	"context"
	"maps"
	"slices"
	"time"

	"relock/internal/idgen"
)

const (
	// lookTimeout bounds one question to Redis, or one message.
	lookTimeout = 500 * time.Millisecond
	// maxHolders is how many holders of a lock are followed at a time.
	maxHolders = 64
)

// watchHost is what a Watch is for its chaser.
type watchHost Watch

var _ host = (*watchHost)(nil)

func (h *watchHost) Owns(session string) bool { return session == h.cfg.Session }
func (h *watchHost) Now() time.Duration       { return h.cfg.Clock() }

func (h *watchHost) Waits(c Claim) (waits []Wait) {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.inside[c]))
	h.mu.Unlock()
	for _, x := range all {
		if x.of.LiesIn(c) {
			waits = append(waits, x.wait)
		}
	}
	return waits
}

// find returns a wait that is watched; nil if it is over.
func (h *watchHost) find(wait Wait) *Waiting {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waits[wait.ID]
}

// session returns the Config of the session that waits: what has to do with a wait goes to its Redis.
func (x *Waiting) session() *Config { return &x.watches[0].cfg }

func (h *watchHost) Holders(wait Wait, ask bool) []Claim {
	x := h.find(wait)
	if x == nil {
		return nil
	}
	holders, blockers, lasts := x.of.Holders()
	s := x.session()
	if !lasts || !ask || blockers == nil || s.Deaf() {
		return holders
	}
	ctx, cancel := context.WithTimeout(s.Context, lookTimeout)
	defer cancel()
	fields, err := s.Fields(ctx, wait.Key)
	if _, _, lasts = x.of.Holders(); err != nil || !lasts {
		return nil
	}
	for _, owner := range blockers(fields) {
		session, number, ok := idgen.SplitOwner(owner)
		c := Claim{session, number, wait.Key}
		if ok && !slices.Contains(holders, c) && len(holders) < maxHolders {
			holders = append(holders, c)
		}
	}
	return holders
}

func (h *watchHost) Tell(wait Wait, session string, m *message) {
	x := h.find(wait)
	text, short := m.encode()
	if x == nil || !short || x.session().Deaf() {
		return
	}
	ctx, cancel := context.WithTimeout(x.session().Context, lookTimeout)
	defer cancel()
	if err := x.session().Tell(ctx, session, text); err != nil {
		x.session().Log.Debug("relock: a search for a deadlock has ended early", "error", err)
	}
}

func (h *watchHost) End(wait Wait, c Cycle) {
	if x := h.find(wait); x != nil {
		x.of.End(c)
	}
}
