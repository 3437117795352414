package locktest

import (
	"path/filepath"
	"runtime"
	"testing"

	"relock/internal/test/redistest"
)

// Main is redistest.Main for a package whose servers know the scripts of plain locks. It does not return.
func Main(m *testing.M) {
	_, here, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(here), "../../..")
	redistest.Main(m, filepath.Join(root, "rlock/lua"), filepath.Join(root, "internal/redis/lua"))
}
