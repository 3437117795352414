package redis_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/life"
	"relock/internal/redis"
	"relock/internal/test/redistest"
)

// A recorded session has one record. Its clock stands still, and Tick is called by the test.
type recorded struct {
	*redis.Record
	client rueidis.Client
	key    string
	now    time.Duration
	wake   chan time.Duration // what WakeAt was called with
	failed lines              // what was logged

	background life.Group
}

// lines are what is logged.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func begin(t *testing.T, s *redistest.Server, label string, lease time.Duration) *recorded {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	id := redistest.Name(t)
	ses := &recorded{client: s.Client(t), key: "relock_session:" + id, now: time.Hour,
		wake: make(chan time.Duration, 1), failed: make(lines, 1)}
	ses.Record = redis.NewRecord(ses.client, &redis.Config{
		Env: life.Env{Context: ctx, Background: &ses.background,
			Clock:  func() time.Duration { return ses.now },
			WakeAt: func(at time.Duration) { ses.wake <- at },
			Log:    slog.New(slog.NewTextHandler(ses.failed, &slog.HandlerOptions{Level: slog.LevelDebug})),
		},
		Session: id, Label: label, Lease: lease, Timeout: 10 * time.Second,
	}, "7.8.9")
	t.Cleanup(func() { end(); ses.background.Wait() })
	return ses
}

func (ses *recorded) write(t *testing.T) {
	cmd := ses.Write()
	ses.Wrote(ses.client.Do(t.Context(), ses.client.B().Eval().Script(cmd.Script.Source()).Numkeys(1).Key(cmd.Keys...).Arg(cmd.Args...).Build()))
}

// content is what stands in Redis.
type content struct {
	Label   string
	Started int64
	Version string
	Lease   int64
}

func (ses *recorded) read(t *testing.T) (c content) {
	t.Helper()
	text, err := ses.client.Do(t.Context(), ses.client.B().Get().Key(ses.key).Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

// A record has what it was given, whatever is in the label, keeps the time at which the session
// began, and ends with the session.
func TestRecordSaysWhoTheSessionIs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		const label = `web-1 "blue" \ ` + "\n"
		ses := begin(t, s, label, time.Hour)
		first := int64(0)
		for range 2 { // the command may be sent twice
			ses.write(t)
			p := ses.read(t)
			if p.Label != label || p.Version != "7.8.9" || p.Lease != time.Hour.Milliseconds() || p.Started < first {
				t.Errorf("read %+v", p)
			}
			first = p.Started
		}
		if at := ses.Tick(ses.now); at != 2*time.Hour {
			t.Errorf("it is to be written again at %v, want one lease later", at)
		}
		s.Do(t, "DEL", ses.key)
		ses.now = 2 * time.Hour
		if at := ses.Tick(ses.now); at < 1000*time.Hour {
			t.Errorf("while it is written it is due at %v", at)
		}
		if at := <-ses.wake; at != 3*time.Hour || ses.Tick(ses.now) != at {
			t.Errorf("next time it is due at %v, and at %v", at, ses.Tick(ses.now))
		}
		if p := ses.read(t); p.Started != first || p.Label != label {
			t.Errorf("read %+v; it began at %d", p, first)
		}
		if ms, err := ses.client.Do(t.Context(), ses.client.B().Pttl().Key(ses.key).Build()).AsInt64(); err != nil || ms <= 2*time.Hour.Milliseconds() || ms > 3*time.Hour.Milliseconds() {
			t.Errorf("it lives for %d ms: %v", ms, err)
		}
		began := time.Now()
		if ses.Drop(20 * time.Second); time.Since(began) > 10*time.Second {
			t.Errorf("to delete it took %v", time.Since(began))
		}
		ses.now = 3 * time.Hour
		ses.Tick(ses.now) // the watchdog comes by once more
		ses.background.Wait()
		if there, err := s.Do(t, "EXISTS", ses.key).AsBool(); there || err != nil {
			t.Errorf("left behind: %v, %v", there, err)
		}
		select {
		case what := <-ses.failed:
			t.Errorf("logged %q", what)
		default:
		}
	})
}

// A record that could not be written again is due as if it were.
func TestRecordThatIsNotRenewed(t *testing.T) {
	s := redistest.Mini(t)
	ses := begin(t, s, "", time.Second)
	ses.write(t)
	ses.client.Close()
	ses.now += time.Minute // of a short lease
	ses.Tick(ses.now)
	if what := <-ses.failed; !strings.Contains(what, "not renewed") {
		t.Errorf("logged %q", what)
	}
	if at := <-ses.wake; at != ses.now+time.Minute {
		t.Errorf("it is due at %v, at %v", at, ses.now)
	}
}

func TestRecordThatWasRefusedIsNotWritten(t *testing.T) {
	s := redistest.Mini(t)
	ses := begin(t, s, "", time.Second)
	ses.Wrote(ses.client.Do(t.Context(), ses.client.B().Arbitrary("NO", "SUCH").Build()))
	if what := <-ses.failed; !strings.Contains(what, "not written") {
		t.Errorf("logged %q", what)
	}
	if at := ses.Tick(1000 * time.Hour); at < 2000*time.Hour {
		t.Errorf("it is due at %v", at)
	}
	s.Do(t, "SET", ses.key, "another's")
	ses.Drop(10 * time.Second)
	if there, err := s.Do(t, "EXISTS", ses.key).AsBool(); !there || err != nil {
		t.Errorf("it deleted a record that it has not written: %v", err)
	}
}

// A silent server keeps Drop for no longer than it was told.
func TestDropOfASilentServer(t *testing.T) {
	s := redistest.Real(t)
	ses := begin(t, s, "", time.Second)
	ses.write(t)
	s.Pause()
	defer s.Resume()
	began := time.Now()
	if ses.Drop(10 * time.Millisecond); time.Since(began) > 5*time.Second {
		t.Errorf("it took %v", time.Since(began))
	}
	s.Resume()
}
