// Package rooms_test checks the order of the packages: each knows those below it, and none above.
package rooms_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// order has all packages of the library, from the top: one imports only what stands behind it. "relock" stands for
// whatever the module is called.
var order = []string{
	"relock/relocktest",
	"relock/election", "relock/multilock", "relock/quorum",
	"relock/fairlock", "relock/rwlock", "relock/semaphore", "relock/latch",
	"relock/rlock",
	"relock/internal/mutex",
	"relock/internal/engine",
	"relock/internal/calls",
	"relock/internal/account",
	"relock/internal/redis",
	"relock/internal/connect",
	"relock/internal/kind",
	"relock/internal/deadlock",
	"relock/internal/inbox",
	"relock/internal/waiting",
	"relock/internal/script",
	"relock/internal/holds",
	"relock/internal/report",
	"relock/internal/life",
	"relock/internal/api",
	"relock/pubsub",
	"relock/internal/clock", "relock/internal/keyname", "relock/internal/idgen",
	"relock/rlock/lua", "relock/locktrace",
}

// A package that imports one above it is how two of them become one. What stands in no row is new, and wants a place.
func TestPackagesImportOnlyWhatIsBelowThem(t *testing.T) {
	module := list(t, "-m")[0]
	place := func(pkg string) int {
		return slices.Index(order, "relock"+strings.TrimPrefix(pkg, module))
	}
	seen := 0
	for _, line := range list(t, "-f", "{{.ImportPath}} {{join .Imports \" \"}}", module+"/...") {
		imports := strings.Fields(line)
		pkg := imports[0]
		if inside := strings.TrimPrefix(pkg, module); inside == "" || inside == "/docs" || strings.HasPrefix(inside, "/examples/") ||
			strings.HasPrefix(inside, "/internal/test/") || strings.HasPrefix(inside, "/internal/engine/test/") {
			continue
		}
		at := place(pkg)
		if at < 0 {
			t.Errorf("%s has no place in the order of packages", pkg)
			continue
		}
		seen++
		for _, imported := range imports[1:] {
			if strings.HasPrefix(imported, module+"/") && place(imported) <= at {
				t.Errorf("%s imports %s, which does not stand behind it in the order of packages", pkg, imported)
			}
		}
	}
	if seen != len(order) {
		t.Errorf("%d of the %d packages in the order exist", seen, len(order))
	}
}

// list runs go list, and returns its lines.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", strings.Join(args, " "), err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
