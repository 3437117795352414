package latch

// ScriptSources returns the Lua of every script, as it is sent, for the external tests.
func ScriptSources() map[string]string {
	return map[string]string{
		"await": awaitScript.Source(), "count": countScript.Source(),
		"count_down": countDownScript.Source(), "try_set": trySetScript.Source(),
	}
}

// Channel returns the channel of a latch.
func (l *Latch) Channel() string { return l.gate.Channel() }
