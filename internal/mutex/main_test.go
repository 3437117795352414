package mutex_test

import (
	"testing"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.Main(m, "../../rlock/lua", "../redis/lua")
}
