package script_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/life"
	"relock/internal/script"
	"relock/internal/test/redistest"
)

// A script that the server does not know is sent whole, however it is sent; and runs once.
func TestAnUnknownScriptIsSentWhole(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client, err := rueidis.NewClient(s.Option())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var background life.Group
		defer background.Wait()
		r := script.NewRunner(client, script.NewConnection(), &background)
		for name, send := range map[string]func(context.Context, script.Command) rueidis.RedisResult{
			"alone": r.Run,
			"together": func(ctx context.Context, c script.Command) rueidis.RedisResult {
				return r.Multi(ctx, []script.Command{c})[0]
			},
		} {
			if err := s.Do(t, "SCRIPT", "FLUSH").Error(); err != nil {
				t.Fatal(err)
			}
			c := script.Command{Script: appendScript, Keys: []string{name}, Args: []string{"x"}}
			for want := int64(1); want <= 2; want++ {
				if n, err := send(t.Context(), c).AsInt64(); n != want || err != nil {
					t.Errorf("%s: run %d gave %d, %v", name, want, n, err)
				}
			}
		}
	})
}
