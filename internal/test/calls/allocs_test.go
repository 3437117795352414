package calls_test

import (
	"context"
	"testing"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// An uncontended pair puts few objects on the heap, rueidis's included. A context that can be
// cancelled costs more: what is sent ends with it, and with the session.
func TestUncontendedPairAllocatesLittle(t *testing.T) {
	s := redistest.Real(t)
	m := rlock.New(locktest.Dial(t, s, rlock.Config{}), "x")
	cancellable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		most float64
	}{
		{"background", context.Background(), 12},
		{"cancellable", cancellable, 16},
	} {
		got := testing.AllocsPerRun(2000, func() {
			_, hold, err := m.Lock(c.ctx)
			if err == nil {
				err = hold.Unlock()
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if redistest.Race { // what the pools drop
			c.most += 6
		}
		if got > c.most {
			t.Errorf("%s: Lock and Unlock allocated %v times, want at most %v", c.name, got, c.most)
		}
	}
}
