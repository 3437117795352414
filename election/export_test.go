package election

// ScriptSources returns the Lua of every script, as it is sent, for the external tests.
func ScriptSources() map[string]string {
	return map[string]string{"publish": publishScript.Source(), "leader": leaderScript.Source()}
}

// Living returns how many seats have a leadership that has not ended.
func Living() int {
	living.mu.RLock()
	defer living.mu.RUnlock()
	return len(living.of)
}

// Reigns returns how many leaderships of the handle's seat are kept.
func Reigns(e *Election) int { return len(living.at(e.seat(), nil)) }
