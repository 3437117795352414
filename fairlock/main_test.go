package fairlock_test

import (
	"flag"
	"os"
	"testing"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		runChild(addr, os.Getenv(childName))
	}
	// Most tests wait most of the time, so more of them run at a time than there are CPUs.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "6")
	}
	redistest.Main(m, "../rlock/lua", "../internal/redis/lua")
}
