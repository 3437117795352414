package deadlock

import (
	"time"
)

// A site is one session, and its host.
type site struct {
	w       *world
	id      string
	claims  uint64
	chaser  *chaser
	history map[string]*mwait // by id
}

func (s *site) Owns(session string) bool { return session == s.id }

func (s *site) Now() time.Duration { return s.w.now }

func (s *site) Waits(c Claim) (waits []Wait) {
	s.w.meanwhile()
	if c.Session != s.id {
		s.w.t.Fatalf("%s is asked about a claim of %s", s.id, c.Session)
	}
	for _, by := range s.w.callers {
		for _, h := range by.holds {
			if h.claim == c && by.wait != nil {
				waits = append(waits, by.wait.w)
			}
		}
	}
	return waits
}

func (s *site) Holders(of Wait, ask bool) (claims []Claim) {
	s.w.meanwhile()
	m := s.history[of.ID]
	if m == nil || m.to != 0 {
		return nil
	}
	for _, h := range m.lock.holders {
		if ask || h.claim.Session == s.id {
			claims = append(claims, h.claim)
		}
	}
	return claims
}

func (s *site) Tell(of Wait, session string, m *message) {
	if s.history[of.ID] == nil {
		s.w.t.Fatalf("%s sends on behalf of %v", s.id, of)
	}
	text, short := m.encode()
	parsed, ok := parse(text)
	if !short || !ok {
		s.w.t.Fatal(text)
	}
	for _, to := range s.w.sessions {
		if to.id == session {
			s.w.post = append(s.w.post, letter{to, parsed})
		}
	}
}

// End checks the cycle: all its steps were true together, a short while ago at most. If nothing
// but deadlocks ends waits, they still are.
func (s *site) End(of Wait, c Cycle) {
	w := s.w
	m := s.history[of.ID]
	if m == nil {
		w.t.Fatalf("%s is to end %v", s.id, of)
	}
	if m.to != 0 {
		return
	}
	from, to := time.Duration(0), w.now
	for i, st := range c {
		before := c[(i+len(c)-1)%len(c)].Holder
		x := w.waitOf(st.Wait.ID)
		lies, holds := w.holds[before], w.holds[st.Holder]
		if x == nil || lies == nil || holds == nil || lies.by != x.c || holds.claim.Key != x.lock.key {
			w.t.Fatalf("a step was never true: %+v\n%v", st, w.trail)
		}
		for _, stretch := range [][2]time.Duration{{x.from, x.to}, {lies.from, lies.to}, {holds.from, holds.to}} {
			from = max(from, stretch[0])
			if stretch[1] != 0 {
				to = min(to, stretch[1])
			}
		}
		if st.Wait.ID > of.ID {
			w.t.Fatalf("the victim %v is not the youngest of %v", of, c)
		}
	}
	switch {
	case from > to, to < w.now-confirmedFor:
		w.t.Fatalf("no deadlock: all steps were true from %v to %v, now is %v: %v\n%v", from, to, w.now, c, w.trail)
	case to < w.now && !w.timeouts && !w.anyShared():
		w.t.Fatalf("a deadlock that ended at %v has a victim at %v: %v\n%v", to, w.now, c, w.trail)
	}
	w.ended++
	w.note("%s ends %s", s.id, c)
	w.stop(m)
	for len(m.c.holds) > 0 { // the victim unlocks what it holds
		w.release(m.c, m.c.holds[0])
	}
}
