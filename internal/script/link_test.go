package script_test

import (
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"relock/internal/script"
)

// clocked is a connection that notes its deadline.
type clocked struct {
	net.Conn
	deadline time.Time
	set      int
}

func (c *clocked) SetDeadline(t time.Time) error {
	c.deadline = t
	c.set++
	return nil
}

// A command is given the time that rueidis asks for, and at most an eighth more, whatever was set
// for those before it.
func TestDeadlineOfEachCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(clocked)
		l := script.NewLink(c)
		random := rand.New(rand.NewPCG(1, 2))
		for i := range 10_000 {
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
			timeout := 3 * time.Second
			if i > 5000 { // other clients have other timeouts, and a connection may change its own
				timeout = time.Duration(1+random.IntN(3000)) * time.Millisecond
			}
			if err := l.SetDeadline(time.Now().Add(timeout)); err != nil {
				t.Fatal(err)
			}
			if d := time.Until(c.deadline); d < timeout || d > timeout*9/8 {
				t.Fatalf("command %d has %v, want %v to %v", i, d, timeout, timeout*9/8)
			}
		}
		if err := l.SetDeadline(time.Time{}); err != nil || !c.deadline.IsZero() {
			t.Errorf("no deadline is wanted, and there is %v, %v", c.deadline, err)
		}
	})
}

// Commands that follow each other closely share a deadline.
func TestDeadlineIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(clocked)
		l := script.NewLink(c)
		const timeout = 3 * time.Second
		for range 1000 {
			time.Sleep(time.Millisecond)
			if err := l.SetDeadline(time.Now().Add(timeout)); err != nil {
				t.Fatal(err)
			}
		}
		if c.set > 4 {
			t.Errorf("set %d times within a second, want at most 4", c.set)
		}
	})
}
