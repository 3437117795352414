package fairlock_test

import (
	"os"
	"testing"

	"relock/internal/redistest"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		runChild(addr, os.Getenv(childName))
	}
	redistest.Main(m)
}
