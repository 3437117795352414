package account_test

import (
	"testing"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
