package mutex

// The window of the external tests into the package.

// ScriptSources returns the Lua of every script, as it is sent.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire": acquireScript.Source(), "release": releaseScript.Source(),
		"extend": extendScript.Source(), "leave": leaveScript.Source(), "renew": renewScript.Source(), "renew_fenced": renewFencedScript.Source(),
		"state": stateScript.Source(), "force_unlock": forceUnlockScript.Source(),
		"look": lookScript.Source(), "waiters": waitersScript.Source(),
	}
}
