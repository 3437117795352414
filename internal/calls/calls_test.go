package calls_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"relock/internal/api"
	"relock/internal/calls"
	"relock/internal/idgen"
	"relock/internal/life"
	"relock/internal/redis"
	"relock/internal/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errSilence is the error of an attempt that gets no answer.
var errSilence = errors.New("no answer")

// A session is one whose Redis returns the errors one after the other, and then none.
type session struct {
	calls.Session
	errs []error
	sent int
}

func newSession(errs ...error) *session {
	d := &session{errs: errs}
	d.Session = calls.Session{Life: life.New(), Requests: new(idgen.Requests), Bound: time.Second, Sender: &redis.Sender{
		Run: func(context.Context, script.Command) rueidis.RedisResult {
			var err error
			if d.sent++; d.sent <= len(d.errs) {
				err = d.errs[d.sent-1]
			}
			return rueidis.NewErrorResult(err)
		}}}
	return d
}

func (d *session) handle() *calls.Handle {
	h := calls.NewHandle(&d.Session, "x", nil)
	return &h
}

func nothing(rueidis.RedisResult) error { return nil }

func TestCallUntilRedisAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSession(errSilence, errSilence)
		decoded := false
		err := d.handle().Call(t.Context(), "ask", script.Command{}, func(rueidis.RedisResult) error { decoded = true; return nil })
		if err != nil || !decoded || d.sent != 3 {
			t.Errorf("%v, decoded: %v, sent %d times; want it decoded after 3", err, decoded, d.sent)
		}
	})
}

// Each error has the operation and the name in front, and nothing is sent where that makes no sense.
func TestErrorsOfACall(t *testing.T) {
	errBad := errors.New("bad")
	over, end := context.WithCancel(t.Context())
	end()
	closed := newSession()
	closed.Life.Refuse()
	unusable := calls.NewHandle(nil, "x", errBad)
	for _, c := range []struct {
		name string
		h    *calls.Handle
		ctx  context.Context
		want error
	}{
		{"a bad handle", &unusable, t.Context(), errBad},
		{"no context", newSession().handle(), nil, api.ErrNilContext},
		{"a context that has ended", newSession().handle(), over, context.Canceled},
		{"a closed session", closed.handle(), t.Context(), api.ErrClosed},
		{"a bad reply", newSession().handle(), t.Context(), script.ErrShape},
	} {
		ran := false
		command := func(string) script.Command { return script.Command{} }
		decode := func(rueidis.RedisResult) error { ran = true; return script.ErrShape }
		for op, err := range map[string]error{
			"call":   c.h.Call(c.ctx, "call", script.Command{}, decode),
			"within": c.h.CallWithin(c.ctx, time.Second, "within", script.Command{}, decode),
			"once":   c.h.CallOnce(c.ctx, "once", command, decode),
		} {
			if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), op+` "x": `) {
				t.Errorf("%s: %v, want %v of %s", c.name, err, c.want, op)
			}
		}
		if ran != (c.want == script.ErrShape) {
			t.Errorf("%s: decoded: %v", c.name, ran)
		}
		if c.want == script.ErrShape {
			continue
		}
		if err := c.h.Go(c.ctx, func(context.Context) { t.Errorf("%s: it runs", c.name) }); !errors.Is(err, c.want) {
			t.Errorf("%s: Go: %v", c.name, err)
		}
	}
}

// A call has a bound: that of the session, or its own.
func TestBoundOfACall(t *testing.T) {
	silent := make([]error, 10_000)
	for i := range silent {
		silent[i] = errSilence
	}
	synctest.Test(t, func(t *testing.T) {
		d := newSession(silent...)
		start := time.Now()
		err := d.handle().Call(t.Context(), "ask", script.Command{}, nothing)
		if took := time.Since(start); !errors.Is(err, api.ErrUnavailable) || took != time.Second {
			t.Errorf("%v after %v, want the desk's bound", err, took)
		}
		start = time.Now()
		err = d.handle().CallWithin(t.Context(), time.Minute, "ask", script.Command{}, nothing)
		if took := time.Since(start); !errors.Is(err, api.ErrUnavailable) || took != time.Minute {
			t.Errorf("%v after %v, want its own bound", err, took)
		}
	})
}

// A request is under way until its call has returned.
func TestCallOnce(t *testing.T) {
	d := newSession()
	var ids []string
	for range 2 {
		err := d.handle().CallOnce(t.Context(), "count", func(id string) script.Command {
			ids = append(ids, id)
			return script.Command{}
		}, func(rueidis.RedisResult) error {
			if n := d.Requests.UnderWay(); n != 1 {
				t.Errorf("%d requests are under way", n)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if n := d.Requests.UnderWay(); n != 0 || ids[0] == ids[1] {
		t.Errorf("of %q %d are under way", ids, n)
	}
}

// The end of a session waits for a call.
func TestCloseWaitsForACall(t *testing.T) {
	d := newSession()
	err := d.handle().Call(t.Context(), "ask", script.Command{}, func(rueidis.RedisResult) error {
		select {
		case <-d.Life.Idle():
			t.Error("it does not wait")
		default:
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	<-d.Life.Idle()
}
