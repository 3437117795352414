package record_test

import (
	"encoding/json"
	"testing"
	"time"

	"relock/internal/record"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// A record has what it was given, whatever is in the label, keeps the time at which the session
// began, and ends with the session.
func TestRecordSaysWhoTheSessionIs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client := s.Client(t)
		const label = `web-1 "blue" \ ` + "\n"
		key := "relock_session:" + redistest.Name(t)
		r := record.New(key, label, time.Hour)
		if r.Written() || r.Every() != time.Hour {
			t.Errorf("written %v, every %v", r.Written(), r.Every())
		}
		read := func() (p struct {
			Label   string
			Started int64
			Version string
		}) {
			text, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(text), &p); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return p
		}
		first := int64(0)
		for range 2 { // the command may be sent twice
			cmd := r.Write()
			if err := r.Wrote(client.Do(t.Context(), client.B().Eval().Script(cmd.Script.Source()).Numkeys(1).Key(cmd.Keys...).Arg(cmd.Args...).Build())); err != nil {
				t.Fatal(err)
			}
			p := read()
			if p.Label != label || p.Version == "" || p.Started < first || !r.Written() {
				t.Errorf("read %+v", p)
			}
			first = p.Started
		}
		if err := client.Do(t.Context(), client.B().Del().Key(key).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		if err := r.Rewrite(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		if p := read(); p.Started != first || p.Label != label {
			t.Errorf("read %+v; it began at %d", p, first)
		}
		if ms, err := client.Do(t.Context(), client.B().Pttl().Key(key).Build()).AsInt64(); err != nil || ms <= 2*time.Hour.Milliseconds() || ms > 3*time.Hour.Milliseconds() {
			t.Errorf("it lives for %d ms: %v", ms, err)
		}
		if err := r.Delete(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

func TestRecordThatWasRefusedIsNotWritten(t *testing.T) {
	s := redistest.Mini(t)
	client := s.Client(t)
	r := record.New("key", "", time.Second)
	if err := r.Wrote(client.Do(t.Context(), client.B().Arbitrary("NO", "SUCH").Build())); err == nil || r.Written() {
		t.Errorf("%v, written %v", err, r.Written())
	}
	if r.Every() != time.Minute {
		t.Errorf("with a short lease it is written every %v", r.Every())
	}
}
