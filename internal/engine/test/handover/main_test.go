package handover_test

import (
	"os"
	"testing"

	"relock/internal/test/locktest"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		runChild(addr, os.Getenv(childName))
	}
	locktest.Main(m)
}

// Short names for what the tests of all kinds of lock share.
var (
	dial   = locktest.Dial
	within = locktest.Within
	must   = locktest.Must
)
