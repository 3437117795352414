package script_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/life"
	"relock/internal/script"
	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
)

// A command says that it goes with fewer keys for a slot that moves: that passes. Where the user may not use all keys
// it does not say so.
func TestACommandSaysThatItsSlotMoves(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		p, opt := faulttest.Of(t, s.Option())
		client, err := rueidis.NewClient(opt)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var background life.Group
		defer background.Wait()
		r := script.NewRunner(client, script.NewConnection(), &background)
		for reply, want := range map[string]int{
			"-TRYAGAIN Multiple keys request during rehashing of slot":                         1,
			"-NOPERM this user has no permissions to access one of the keys used as arguments": 0,
		} {
			p.RefuseCommand("EVALSHA", reply)
			for name, send := range map[string]func(context.Context, script.Command){
				"alone":    func(ctx context.Context, c script.Command) { r.Run(ctx, c) },
				"together": func(ctx context.Context, c script.Command) { r.Multi(ctx, []script.Command{c}) },
			} {
				fewer, parted := 0, 0
				send(t.Context(), script.Command{Script: appendScript, Keys: []string{"a", "b"}, Args: []string{"x"},
					Fewer: func(c script.Command) script.Command {
						fewer++
						c.Keys, c.Fewer = c.Keys[:1], nil
						return c
					},
					Parted: func() { parted++ },
				})
				if fewer != 1 || parted != want {
					t.Errorf("%s, %s: it went with fewer keys %d times, and said %d times that the slot moves", name, reply, fewer, parted)
				}
			}
		}
	})
}
