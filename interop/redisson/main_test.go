package redisson

import (
	"os"
	"testing"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		child(job)
	}
	redistest.Main(m)
}
