package redisson

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A flaw is what older versions of Redisson cannot do, also without us; docs/redisson.md names
// each.
type flaw struct {
	rows  string // what the names of the rows begin with that show it
	until []int  // the latest version of Redisson that is known to have it
	why   string
	where func(*env) bool // nil: everywhere
}

var flaws = []flaw{
	{rows: "rw/JavaReadsSeveralLocks", until: []int{3, 52, 0}, why: "the renewal of readers misses all locks but one, and readers that hold twice"},
	{rows: "rw/LeasesDiffer", until: []int{4, 3, 1}, why: "the renewal of a reader sets the expiry of every reader"},
	{rows: "rw/GoReaderIsOver", until: []int{4, 3, 1}, why: "the renewal of a reader sets the expiry of every reader"},
	{rows: "permits/GoReleasesJava", until: []int{3, 50, 0}, why: "permits that are given back together do not wake all waiters"},
	{rows: "stress/permits", until: []int{3, 50, 0}, why: "permits that are given back together do not wake all waiters"},
	{rows: "fair/NonReentrantLock", until: []int{4, 3, 1}, why: "there is no getNonReentrantLock"},
	{rows: "fair/", until: []int{3, 50, 0}, why: "a NameMapper does not map the keys of a fair lock's queue",
		where: func(e *env) bool { return e.cluster != nil && e.prefix != "" }},
}

// skipFlaw skips a row that cannot pass with the version of Redisson that is tested.
func (e *env) skipFlaw(t *testing.T, p *peer, row string) {
	t.Helper()
	version := make([]int, 3)
	if _, err := fmt.Sscanf(p.version, "redisson-%d.%d.%d", &version[0], &version[1], &version[2]); err != nil {
		t.Fatalf("%q does not tell a version: %v", p.version, err)
	}
	for _, f := range flaws {
		if strings.HasPrefix(row, f.rows) && slices.CompareFunc(version, f.until, cmp.Compare[int]) <= 0 && (f.where == nil || f.where(e)) {
			t.Skipf("SKIPPED: in %s %s, see docs/redisson.md", p.version, f.why)
		}
	}
}
