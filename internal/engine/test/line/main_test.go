package line_test

import (
	"testing"

	"relock/internal/test/locktest"
)

func TestMain(m *testing.M) { locktest.Main(m) }

// Short names for what the tests of all kinds of lock share.
var (
	dial   = locktest.Dial
	within = locktest.Within
	must   = locktest.Must
)
