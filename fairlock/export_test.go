package fairlock

// The window of the external tests into the package.

// ScriptSources returns the Lua of every script, as it is sent.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire": withGrant(acquireLua), "release": withGrant(releaseLua), "beat": withGrant(beatLua),
		"force_unlock": withGrant(forceUnlockLua), "waiters": waitersLua,
	}
}
