package rwlock_test

import (
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Main(m, "lua", "../internal/redis/lua")
}

// Short names for what the tests of all kinds of lock share.
var (
	dial   = locktest.Dial
	within = locktest.Within
	must   = locktest.Must
	is     = locktest.Is
	ends   = locktest.Ends
)
