package semaphore

import (
	"time"

	"relock/internal/engine"
	"relock/internal/kind"
	"relock/rlock"
)

// The window of the external tests into the package.

// ScriptSources returns the Lua of every script, as it is sent.
func ScriptSources() map[string]string {
	return map[string]string{
		"acquire": acquireScript.Source(), "release": releaseScript.Source(), "renew": renewScript.Source(), "renew_taken": renewByTaken.Source(),
		"extend": extendScript.Source(), "state": stateScript.Source(), "set_limit": setLimitScript.Source(),
		"take": takeScript.Source(), "untake": untakeScript.Source(), "add": addScript.Source(),
		"drain": drainScript.Source(), "delete": deleteScript.Source(),
		"delete_counter": deleteCounterScript.Source(), "release_by_id": releaseByIDScript.Source(), "extend_by_id": extendByIDScript.Source(), "try_set": trySetScript.Source(), "count": countScript.Source(),
	}
}

// Memory is for how long a request is remembered.
const Memory = kind.Memory

// RequestsUnderWay returns how many requests of the session are neither answered nor given up.
func RequestsUnderWay(s *rlock.Session) int { return (*engine.Session)(s).Requests().UnderWay() }

// SliceFor lets the time slices of the permits that the session has last for d from now on, so
// that a test may take its time between two hand-overs.
func SliceFor(s *rlock.Session, name string, d time.Duration) {
	(*engine.Session)(s).SliceFor(permitsKind.Family, name, d)
}
