package rlock

// The window of the external tests into the package.

// ScriptSources returns the Lua of every registered script.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire": acquireLua, "release": releaseLua, "acquire_by_id": acquireByIDLua,
		"release_by_id": releaseByIDLua, "renew": renewLua,
		"extend": extendLua, "transfer": transferLua, "force_unlock": forceUnlockLua, "state": stateLua,
	}
}

// Books returns how much the session keeps account of; all 0 when nothing is held
// and nobody waits.
func (s *Session) Books() (held, pending, lines, agenda, active int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held), len(s.pending), len(s.lines) + len(s.places), len(s.agenda), s.active
}

// WaitersOf returns how many goroutines stand in the session's line for name.
func (s *Session) WaitersOf(name string) int {
	names, _ := s.Names(name)
	m := newMutexPrimitive(names, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	if l := s.lines[lineKey{m.channel, m.Key()}]; l != nil {
		for w := l.front; w != nil; w = w.next {
			n++
		}
	}
	return n
}
