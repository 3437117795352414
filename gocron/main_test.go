package gocron_test

import (
	"os"
	"testing"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		runChild(addr)
	}
	redistest.Main(m, "../rlock/lua", "../election/lua")
}
