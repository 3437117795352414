package scriptfuzz

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"relock/fairlock"
	"relock/internal/idgen"
	"relock/internal/inbox"
	"relock/internal/script"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/internal/waiting"
	"relock/pubsub"
	"relock/rlock"
)

// message is a text that may come on a channel: one that somebody sends, with parts of another; or anything.
func (w *world) message(key string) string {
	n := func() string {
		return w.of("0", "1", "-1", "", "x", "9223372036854775808", itoa(w.ms), itoa(w.ms*1000), "250")
	}
	entry := w.of(w.own("plain")+w.owner, w.own("fair")+w.owner, w.own("writers")+w.owner, w.own("permits")+w.owner, "g", "")
	length := w.of(itoa(len(entry)), itoa(len(entry)), "1", n())
	switch w.n(6) {
	case 0, 1:
		return "granted:" + n() + ":" + n() + ":" + n() + ":" + n() + ":" + n() + ":" + length + ":" + entry + key
	case 2:
		return "called:" + n() + ":" + length + ":" + entry + key
	case 3:
		return fmt.Sprintf("%s:%s:%s%s", w.of("lost", "wanted"), w.of(itoa(len(w.owner)), n()), w.owner, key)
	case 4:
		return "deadlock:" + w.of("1:s", "1:h", "1:c", "") + w.of("1:1", "0:", "5:x") + strings.Repeat("1:0", w.n(8)) + n()
	default:
		return string(w.rest)
	}
}

// interrupted has a session hold one lock and wait for another, while messages come on its own channel and on those of
// the locks. Whatever they say, the process goes on, the session works afterwards, and nothing is left.
func interrupted(t *testing.T, data []byte) {
	synctest.Test(t, func(t *testing.T) {
		s, w := redistest.BubbleMini(t), newWorld(data, time.Now().UnixMilli())
		quiet := slog.New(slog.DiscardHandler)
		other := locktest.Dial(t, s, rlock.Config{Logger: quiet})
		ses := locktest.Dial(t, s, rlock.Config{ID: w.session, Lease: 3 * time.Second, Logger: quiet})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lock := func(s *rlock.Session, name string) lockFunc { return rlock.New(s, name).Lock }
		if w.once(2) {
			lock = func(s *rlock.Session, name string) lockFunc { return fairlock.New(s, name).Lock }
		}
		_, mine, err := lock(ses, "mine")(ctx)
		locktest.Must(t, err)
		_, taken, err := lock(other, "taken")(ctx)
		locktest.Must(t, err)
		waits := make(chan error, 1)
		go func() {
			_, h, err := lock(ses, "taken")(ctx)
			if err == nil {
				time.Sleep(100 * time.Millisecond)
				_ = h.Unlock() // it may have been lost, by what a message has said
			}
			waits <- err
		}()
		for range 1 + w.n(3) {
			time.Sleep(time.Duration(w.n(100)) * time.Millisecond)
			ch := w.of(prefix+w.session, prefix+w.session, "redisson_lock__channel:{taken}", "redisson_lock__channel:{mine}")
			locktest.Must(t, s.Do(t, "PUBLISH", ch, w.message(w.of("taken", "mine", ""))).Error())
		}
		time.Sleep(5 * time.Second)
		_ = taken.Unlock()
		if err := <-waits; err != nil {
			t.Errorf("the session has waited in vain: %v", err)
		}
		_ = mine.Unlock()
		for _, name := range []string{"taken", "mine"} {
			_, h, err := lock(ses, name)(ctx)
			locktest.Must(t, err)
			locktest.Must(t, h.Unlock())
		}
	})
}

// FuzzMessages: see interrupted.
func FuzzMessages(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(interrupted)
}

// The same, always with the same messages.
func TestMessagesThatMakeNoSense(t *testing.T) {
	rng, data := rand.NewChaCha8([32]byte{8}), make([]byte, 60)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !t.Failed(); {
		_, _ = rng.Read(data)
		interrupted(t, data)
		if t.Failed() {
			t.Logf("data %q", data)
		}
	}
}

// FuzzTexts gives any text to all that parses messages and ids: nothing panics, and what is taken for a message or an
// id is made of the text.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{
		"granted:1:0:0:0:0:24:g0001250000500000002S1:1x", "called:5:24:i0001250000500000002S1:1x", "lost:4:S1:1x", "deadlock:1:s1:11:0",
		"S1:1", "0:5", strings.Repeat("\x00", idgen.PermitSize), "@user_script: 1: -ERR", "Error running script @user_script: x: -OOM",
	} {
		f.Add(text, "S1")
	}
	heard := 0
	one := func(string) bool { heard++; return false }
	h := &inbox.Handlers{Missed: func() {}, Line: func(m string) bool { _, ok := waiting.Parse(m, "S1"); return ok && one(m) },
		Deadlock: func(m string) error { one(m); return nil }, Revoked: func(_, _ string) { one("") }, Log: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, text, session string) {
		if m, ok := waiting.Parse(text, session); ok {
			if !strings.HasSuffix(text, m.Head+m.Owner+m.Key) || len(m.Head) < 20 || m.Lease < 0 {
				t.Errorf("%q for %q: %+v", text, session, m)
			}
			m.Sort()
		}
		if r, ok := inbox.ParseNote(text); ok {
			if again, ok := inbox.ParseNote(r.String()); !ok || again != r || !strings.HasSuffix(text, r.Owner+r.Key) {
				t.Errorf("%q: %+v", text, r)
			}
		}
		heard = 0
		if h.Hear(pubsub.Message{Payload: text}); heard > 1 {
			t.Errorf("%q was heard %d times", text, heard)
		}
		if id, ok := idgen.SessionOfPermit(text); ok && !strings.HasPrefix(text, id+":") {
			t.Errorf("%q is of session %q", text, id)
		}
		if mark, owner, _, ok := idgen.SplitPermit(text); ok && (!strings.HasPrefix(text, owner) || !strings.HasPrefix(owner, mark)) {
			t.Errorf("%q: mark %q, owner %q", text, mark, owner)
		}
		if slot, number := idgen.SplitRequest(text); slot+":"+number != text && slot != text {
			t.Errorf("%q: slot %q, number %q", text, slot, number)
		}
		if got := script.Text(fmt.Errorf("%s", text)); !strings.HasSuffix(text, got) {
			t.Errorf("%q says %q", text, got)
		}
	})
}
