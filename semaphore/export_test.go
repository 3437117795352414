package semaphore

// The window of the external tests into the package.

// ScriptSources returns the Lua of every script of the package.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire": acquireLua, "release": releaseLua, "renew": renewLua, "extend": extendLua,
		"state": stateLua, "set_limit": setLimitLua,
		"take": takeLua, "untake": untakeLua, "add": addLua, "drain": drainLua,
		"try_set": trySetLua, "count": countLua,
	}
}
