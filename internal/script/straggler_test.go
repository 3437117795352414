package script_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/life"
	"relock/internal/script"
	"relock/internal/test/redistest"
)

// A stalled client is descheduled in its next pipeline: it has seen that the context has not ended, and has not written.
type stalled struct {
	rueidis.Client
	reached, goOn chan struct{} // of the next one; nil: it does not stall
}

func (c *stalled) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	if reached := c.reached; reached != nil && ctx.Err() == nil {
		c.reached = nil
		close(reached)
		<-c.goOn
		ctx = context.WithoutCancel(ctx)
	}
	return c.Client.DoMulti(ctx, cmds...)
}

// While a connection is suspect, a caller leaves when its context ends, and what it was sending may still be sent. What
// takes that back must not overtake it. A goroutine that does not come on holds it up for a moment only.
func TestNothingOvertakesWhatACallerHasLeft(t *testing.T) {
	for name, comesOn := range map[string]bool{"ComesOn": true, "Hangs": false} {
		t.Run(name, func(t *testing.T) {
			redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) { leavesAStraggler(t, s, comesOn) })
		})
	}
}

func leavesAStraggler(t *testing.T, s *redistest.Server, comesOn bool) {
	opt := s.Option()
	opt.DisableCache = true
	client, err := rueidis.NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var background life.Group
	defer background.Wait()
	slow, conn := &stalled{Client: client, goOn: make(chan struct{})}, script.NewConnection()
	r := script.NewRunner(slow, conn, &background)
	key := redistest.Name(t)
	add := func(what string) script.Command {
		return script.Command{Script: appendScript, Keys: []string{key}, Args: []string{what}}
	}
	if err := r.Run(context.Background(), add("first")).Error(); err != nil { // else the attempt takes two trips
		t.Fatal(err)
	}
	conn.Redialled() // so it is suspect
	ctx, leave := context.WithCancel(context.Background())
	reached, left := make(chan struct{}), make(chan error, 1)
	slow.reached = reached
	go func() { left <- r.Run(ctx, add("attempt")).Error() }()
	<-reached
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- r.Behind(context.Background(), []script.Command{add("release")})[0].Error() }()
	want := []string{"first", "attempt", "release"}
	if comesOn {
		select {
		case err := <-sent:
			t.Error("the release did not wait for the attempt")
			sent <- err
		case <-time.After(50 * time.Millisecond): // in which the attempt does not come on
		}
		close(slow.goOn)
		err = <-sent
	} else {
		err = <-sent
		close(slow.goOn)
		slices.Reverse(want[1:])
	}
	if err != nil {
		t.Fatal(err)
	}
	background.Wait()
	if got, err := s.Do(t, "LRANGE", key, "0", "-1").AsStrSlice(); err != nil || !slices.Equal(got, want) {
		t.Errorf("Redis has executed %q, %v; want %q", got, err, want)
	}
}
