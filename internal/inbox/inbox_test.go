package inbox_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/inbox"
	"relock/internal/life"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// TellAll reaches every session's channel and no other; Tell reaches one.
func TestTell(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		a, b := locktest.Hears(t, s, inbox.Prefix+"a"), locktest.Hears(t, s, inbox.Prefix+"b")
		other := locktest.Hears(t, s, "other")
		client := s.Client(t)
		var background life.Group
		inbox.TellAll(t.Context(), client, &background, "all", func(err error) { t.Error(err) })
		if err := inbox.Tell(t.Context(), client, "b", "one"); err != nil {
			t.Error(err)
		}
		background.Wait()
		for _, c := range []struct {
			heard <-chan string
			want  string
		}{{a, "all"}, {b, "all"}, {b, "one"}} {
			if got := locktest.Get(t, c.heard, 5*time.Second, "a message"); got != c.want {
				t.Errorf("heard %q, want %q", got, c.want)
			}
		}
		s.Do(t, "PUBLISH", "other", "end")
		if got := locktest.Get(t, other, 5*time.Second, "the last message"); got != "end" {
			t.Errorf("a channel that is no session's heard %q", got)
		}
		if len(a) > 0 {
			t.Errorf("a heard what was for b: %q", <-a)
		}
	})
}

// A silentClient gives up on its server when the test says so, whatever its context does.
type silentClient struct {
	rueidis.Client
	givesUp chan struct{}
}

func (c silentClient) Nodes() map[string]rueidis.Client {
	return map[string]rueidis.Client{"gone": c}
}

func (c silentClient) Do(ctx context.Context, _ rueidis.Completed) rueidis.RedisResult {
	<-c.givesUp
	return rueidis.NewErrorResult(ctx.Err())
}

// TellAll waits no longer than its context lives, nor than a second, and leaves what hangs to the
// background.
func TestTellAllDoesNotHang(t *testing.T) {
	redistest.EachBubble(t, func(t *testing.T, s *redistest.Server) {
		for _, most := range []time.Duration{50 * time.Millisecond, time.Hour} {
			c := silentClient{s.Client(t), make(chan struct{})}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			var background life.Group
			returned := make(chan struct{})
			go func() {
				defer close(returned)
				inbox.TellAll(ctx, c, &background, "all", func(err error) { t.Errorf("it waited for %v", err) })
			}()
			bound := min(most, time.Second)
			locktest.Get(t, returned, time.Minute, "TellAll to return")
			if took := time.Since(began); took < bound || took > bound+s.Slack() {
				t.Errorf("it returned after %v, want %v", took, bound)
			}
			close(c.givesUp)
			background.Wait()
		}
	})
}

// A node's refusal is told.
func TestTellAllTellsWhatFailed(t *testing.T) {
	s := redistest.Mini(t)
	client := s.Client(t)
	s.Mini.SetError("ERR no")
	t.Cleanup(func() { s.Mini.SetError("") })
	var background life.Group
	var errs []error
	inbox.TellAll(t.Context(), client, &background, "all", func(err error) { errs = append(errs, err) })
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "no") {
		t.Errorf("errors %v, want the one of the server", errs)
	}
}

// A field gives its bytes back, whatever these are and whatever stands behind it.
func TestField(t *testing.T) {
	for _, s := range []string{"", "a", "3:abc", ":", "\x00\xff", strings.Repeat("x", 1000)} {
		for _, behind := range []string{"", "1:", "b"} {
			if got, rest, ok := inbox.CutField(inbox.Field(s) + behind); !ok || got != s || rest != behind {
				t.Errorf("%q before %q became %q, %q, %v", s, behind, got, rest, ok)
			}
		}
	}
	for _, text := range []string{"", "1", "a", ":a", "1:", "2:a", "-1:a", "+1:a", "x:a", "4294967296:a", "99999999999999999999:a"} {
		if s, rest, ok := inbox.CutField(text); ok {
			t.Errorf("%q begins with %q before %q", text, s, rest)
		}
	}
}

// A note's text gives the owner and the key back, whatever these are.
func TestNote(t *testing.T) {
	for _, n := range []inbox.Note{
		{}, {Owner: "owner:1", Key: "key"}, {Owner: "owner:1"}, {Key: "key"}, {Owner: "lost:3:a", Key: ":::"},
		{Owner: "\x00é", Key: "7:\xff"}, {Owner: strings.Repeat("o", 1000), Key: "12"},
	} {
		for _, n.Kind = range []string{inbox.Lost, inbox.Wanted} {
			if got, ok := inbox.ParseNote(n.String()); !ok || got != n {
				t.Errorf("%q became %q, %v", n, got, ok)
			}
		}
	}
}

// Other texts are none.
func TestNoNote(t *testing.T) {
	for _, text := range []string{"", "lost:", "lost:1", "lost::a", "lost:-1:a", "lost:2:a", "gone:1:ab", "lost:x:ab", "wanted", ":1:ab"} {
		if n, ok := inbox.ParseNote(text); ok {
			t.Errorf("%q was taken for %v", text, n)
		}
	}
}
