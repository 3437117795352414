package claim_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A session that has used a lock holds no more memory than its connections need: services that run many
// sessions, or small ones, pay for each.
func TestASessionIsSmall(t *testing.T) {
	redistest.SkipShort(t)
	const mb = 1_000_000
	t.Run("standalone", func(t *testing.T) { wantSize(t, 1*mb, redistest.Real(t).Addr) })
	// (It is 1.92 MB; beside much other work it was 2.01 once.)
	t.Run("cluster", func(t *testing.T) { wantSize(t, 2*mb+mb/10, redistest.NewCluster(t).Addrs...) })
}

// wantSize opens sessions as an application does, and wants them to hold so many bytes each at most.
func wantSize(t *testing.T, most uint64, addrs ...string) {
	const sessions = 20
	open := func() {
		s := locktest.DialOption(t, rueidis.ClientOption{InitAddress: addrs}, rlock.Config{})
		for i := range 20 { // on all nodes
			must(t, rlock.New(s, fmt.Sprint("x", i)).Do(t.Context(), func(context.Context) error { return nil }))
		}
	}
	open() // what is made once
	before := inUse()
	for range sessions {
		open()
	}
	if each := (inUse() - before) / sessions; each > most {
		t.Errorf("a session holds %d bytes, want at most %d", each, most)
	} else {
		t.Logf("a session holds %d bytes", each)
	}
}

// inUse is how many bytes are in use.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // of what pools had
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
