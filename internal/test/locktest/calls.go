package locktest

import (
	"testing"

	"relock/internal/script"
	"relock/internal/test/faulttest"
	"relock/rlock/lua"
)

// callSources are the scripts of plain locks as they are sent: with what they include.
var callSources = func() map[string]string {
	src := map[string]string{}
	for _, name := range []string{"acquire", "release", "extend", "leave", "renew", "state", "force_unlock"} {
		src[name] = script.Load(lua.Files, name+".lua").Source()
	}
	return src
}()

// Calls returns a matcher, for a proxy, for the calls of the plain lock's script of that name.
func Calls(t *testing.T, name string) func(cmd []string) bool {
	t.Helper()
	src := callSources[name]
	if src == "" {
		t.Fatalf("no script lua/%s.lua", name)
	}
	return Runs(src)
}

// CallsSent returns how many calls of a script the proxy has forwarded.
func CallsSent(t *testing.T, p *faulttest.Proxy, name string) int {
	t.Helper()
	return Sent(p, Calls(t, name))
}
