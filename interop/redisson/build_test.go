package redisson

import (
	"errors"
	"os"
	"sync"
	"testing"

	"relock/internal/test/javapeer"
)

// requireJava is the variable that makes tests fail which would be skipped.
const requireJava = "RELOCK_REQUIRE_JAVA"

// classPath returns where the Java program is, built if need be.
func classPath(t testing.TB) string {
	t.Helper()
	path, err := built()
	switch {
	case errors.Is(err, javapeer.ErrNoJava) && os.Getenv(requireJava) != "1":
		t.Skipf("SKIPPED, no Java: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	return path
}

// built builds the Java program, once in a run of the tests.
var built = sync.OnceValues(func() (string, error) { return javapeer.Build("peer") })
