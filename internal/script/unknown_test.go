package script_test

import (
	"context"
	"slices"
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

// The last command of InOrder is executed behind one that the server did not know, and that was sent again. That of Multi
// is executed once.
func TestTheLastCommandRunsBehindOneThatIsSentAgain(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client, err := rueidis.NewClient(s.Option())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var background life.Group
		defer background.Wait()
		r := script.NewRunner(client, script.NewConnection(), &background)
		for name, c := range map[string]struct {
			send func(context.Context, []script.Command) []rueidis.RedisResult
			want []string
		}{
			"in order":    {r.InOrder, []string{"last", "first", "last"}},
			"as it comes": {r.Multi, []string{"last", "first"}},
		} {
			unknown := script.New("-- " + name + "\n" + appendScript.Source())
			add := func(with *script.Script, what string) script.Command {
				return script.Command{Script: with, Keys: []string{name}, Args: []string{what}}
			}
			if err := s.Do(t, "SCRIPT", "LOAD", appendScript.Source()).Error(); err != nil {
				t.Fatal(err)
			}
			results := c.send(t.Context(), []script.Command{add(unknown, "first"), add(appendScript, "last")})
			if n, err := results[1].AsInt64(); err != nil || name == "in order" && n != 3 {
				t.Errorf("%s: the last command was answered with %d, %v", name, n, err)
			}
			if got, err := s.Do(t, "LRANGE", name, "0", "-1").AsStrSlice(); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: Redis has executed %q, %v; want %q", name, got, err, c.want)
			}
		}
	})
}
