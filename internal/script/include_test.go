package script_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"relock/internal/script"
)

func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

// Snippets stand where the include line was: those of the package before shared ones, what
// they include before them, and none twice.
func TestLoadPutsInWhatIsNamed(t *testing.T) {
	f := files(
		"lua/a.lua", "-- a.lua: a script\n-- include b, c\nreturn b + c\n",
		"lua/b.lua", "-- include c\nlocal b = c\n",
		"lua/c.lua", "local c = 1\n",
		"lua/int.lua", "local int = 2\n",
		"lua/own.lua", "-- include int\nreturn int\n",
		"lua/shared.lua", "-- include each\nreturn each\n",
		"lua/none.lua", "return 1 -- include c\n",
	)
	for name, want := range map[string]string{
		"a":    "-- a.lua: a script\nlocal c = 1\nlocal b = c\nreturn b + c\n",
		"own":  "local int = 2\nreturn int\n",
		"none": "return 1 -- include c\n",
	} {
		if got := script.Load(f, "lua/"+name+".lua").Source(); got != want {
			t.Errorf("%s is sent as\n%s\nwant\n%s", name, got, want)
		}
	}
	if got := script.Load(f, "lua/shared.lua").Source(); !strings.Contains(got, "\nlocal function each(") {
		t.Errorf("a shared snippet is not put in:\n%s", got)
	}
}

// A mistake in an include line shows when the program starts.
func TestLoadPanics(t *testing.T) {
	f := files(
		"a.lua", "-- include missing\n",
		"b.lua", "-- include int\n-- include clock\n",
		"c.lua", "-- include d\n",
		"d.lua", "-- include int, nothing\n",
		"e.lua", "-- include int,clock\n",
	)
	for name, want := range map[string]string{
		"a.lua": `"missing"`, "b.lua": "2 include lines", "c.lua": `"nothing"`, "e.lua": `"int,clock"`, "f.lua": "f.lua",
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r, ok := recover().(string); !ok || !strings.Contains(r, want) {
					t.Errorf("recovered %q, want a panic that tells of %s", r, want)
				}
			}()
			script.Load(f, name)
		})
	}
}
