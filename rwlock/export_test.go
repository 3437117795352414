package rwlock

// The window of the external tests into the package.

// ScriptSources returns the Lua of every registered script, as it is sent.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire_read": acquireReadLua, "acquire_write": withAlive(acquireWriteLua),
		"release_read": withAlive(releaseReadLua), "release_write": releaseWriteLua,
		"extend_read": extendReadLua, "extend_write": extendWriteLua,
		"renew": renewLua, "transfer_write": transferWriteLua, "force_unlock": forceUnlockLua, "state": stateLua,
	}
}
