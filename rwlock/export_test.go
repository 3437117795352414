package rwlock

// The window of the external tests into the package.

// ScriptSources returns the Lua of every script, as it is sent.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire_read": acquireReadScript.Source(), "acquire_write": acquireWriteScript.Source(),
		"release_read": releaseReadScript.Source(), "release_write": releaseWriteScript.Source(),
		"extend": extendScript.Source(), "leave_write": leaveWriteScript.Source(), "renew": renewScript.Source(),
		"force_unlock": forceUnlockScript.Source(), "state": stateScript.Source(),
	}
}
