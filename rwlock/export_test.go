package rwlock

// The window of the external tests into the package.

// ScriptSources returns the Lua of every registered script.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire_read": acquireReadLua, "acquire_write": acquireWriteLua,
		"release_read": releaseReadLua, "release_write": releaseWriteLua,
		"extend_read": extendReadLua, "extend_write": extendWriteLua,
		"renew": renewLua, "transfer_write": transferWriteLua, "force_unlock": forceUnlockLua, "state": stateLua,
	}
}
