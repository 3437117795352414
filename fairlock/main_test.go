package fairlock_test

import (
	"testing"

	"relock/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
