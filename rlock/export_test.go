package rlock

import (
	"testing"
	"time"

	"relock/internal/connect"
)

// AskForTLS has Dial take up to d, until the test ends, to find out whether a server speaks TLS. The
// test may not be parallel.
func AskForTLS(t testing.TB, d time.Duration) {
	before := connect.Patience
	t.Cleanup(func() { connect.Patience = before })
	connect.Patience = d
}
