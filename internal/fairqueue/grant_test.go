package fairqueue_test

import (
	"testing"

	"relock/internal/fairqueue"
)

// The message of a grant has numbers, and an entry and a key of any bytes.
func TestParseGrant(t *testing.T) {
	want := fairqueue.Grant{At: 1795349127621, Token: 9, Tokens: 3, Last: 4, Position: 1795349127510463, Entry: "e:1", Key: "k:2"}
	if got, ok := fairqueue.ParseGrant("grant:1795349127621:9:3:4:1795349127510463:3:e:1k:2"); !ok || got != want {
		t.Errorf("got %+v, %v; want %+v", got, ok, want)
	}
	for _, bad := range []string{
		"", "grant:", "0", "1:2:3:4:5:1:ek", "grant:1:2:3:4:5", "grant:1:2:3:4:5:", "grant:1:2:3:4:5:3:ek",
		"grant:1:2:3:4:5:-1:ek", "grant:1:2:3:4:x:1:ek", "grant:1:2:3:4:5:99999999999999999999:ek",
	} {
		if got, ok := fairqueue.ParseGrant(bad); ok {
			t.Errorf("%q is taken for %+v", bad, got)
		}
	}
}

func FuzzParseGrant(f *testing.F) {
	f.Add("grant:1:2:3:4:5:1:ek")
	f.Fuzz(func(t *testing.T, payload string) { fairqueue.ParseGrant(payload) })
}
