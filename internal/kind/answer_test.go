package kind_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/kind"
	"relock/internal/script"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

var errBreak = errors.New("the connection broke")

// Each shape of a reply that Primitive speaks of is taken in, short ones as what they stand for.
func TestDecode(t *testing.T) {
	lock, permits := &kind.Kind{}, &kind.Kind{Permits: true}
	next := &kind.Op{Lease: time.Second, QueuePlace: kind.QueuePlace{Next: true}}
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, c := range []struct {
			reply string // as a script returns it
			kind  *kind.Kind
			op    *kind.Op
			want  kind.Answer
		}{
			{"{1, 2, 9, 1}", lock, next, kind.Answer{Status: kind.Granted, Value: 2, Token: 9, Changed: true}},
			{"1", lock, next, kind.Answer{Status: kind.Granted, Value: 1, Changed: true}},
			{"{0, 300, 1795349127621, 7}", lock, next, kind.Answer{Status: kind.Refused, Value: 300, At: 1795349127621, Position: 7}},
			{"{-1, 0, 0, 0}", lock, next, kind.Answer{Status: kind.NotHeld}},
			{"{-2, 5, 0, 0}", lock, next, kind.Answer{Status: kind.ForGood, Value: 5}},
			{"{1, 300, 0, 1, 4, 10}", permits, next, kind.Answer{Status: kind.Granted, Value: 300, Changed: true, Free: 4, Limit: 10, Sized: true}},
			{"{0, -1, 0, 0, 2, -1}", permits, next, kind.Answer{Value: -1, Free: 2, Limit: -1, Sized: true}},
			{"4", permits, next, kind.Answer{Status: kind.Granted, Value: 1001, Changed: true, Free: 4, Limit: -1, Sized: true}},
			{"4", permits, &kind.Op{}, kind.Answer{Status: kind.Granted, Value: -1, Changed: true}},
			{"-300", permits, next, kind.Answer{Status: kind.Granted, Value: 300, Changed: true, Limit: -1, Sized: true}},
		} {
			var got kind.Answer
			if err := got.Decode(s.Do(t, "EVAL", "return "+c.reply, "0"), c.kind, c.op); err != nil || got != c.want {
				t.Errorf("%s: %+v, %v, want %+v", c.reply, got, err, c.want)
			}
		}
	})
}

// Other replies are errors: of the shape, or Redis's own.
func TestDecodeOfWhatIsNoAnswer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		for _, reply := range []string{"0", "2", "{}", "{1, 2, 3}", "{1, 2, 3, 4, 5}", "{1, 2, 3, 4, 5, 6, 7}"} {
			var got kind.Answer
			if err := got.Decode(s.Do(t, "EVAL", "return "+reply, "0"), &kind.Kind{}, &kind.Op{}); !errors.Is(err, script.ErrShape) {
				t.Errorf("%s: %+v, %v", reply, got, err)
			}
		}
		var got kind.Answer
		if err := got.Decode(s.Do(t, "EVAL", "return redis.error_reply('WRONGTYPE')", "0"), &kind.Kind{}, &kind.Op{}); script.Text(err) != "WRONGTYPE" {
			t.Errorf("an error of Redis: %v", err)
		}
	})
	for sent, want := range map[error]error{errBreak: api.ErrUnavailable, context.Canceled: context.Canceled} {
		var got kind.Answer
		err := got.Decode(rueidis.NewErrorResult(sent), &kind.Kind{}, &kind.Op{})
		if !errors.Is(err, want) || !errors.Is(err, sent) || sent == context.Canceled && errors.Is(err, api.ErrUnavailable) {
			t.Errorf("%v became %v", sent, err)
		}
	}
}
