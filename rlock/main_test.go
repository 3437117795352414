package rlock_test

import (
	"os"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		runChild(addr, os.Getenv(childName))
	}
	redistest.Main(m, "lua", "../internal/redis/lua")
}

// Short names for what the tests of all kinds of lock share.
var (
	dial   = locktest.Dial
	within = locktest.Within
	must   = locktest.Must
)
