package redis_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/kind"
	"relock/internal/redis"
	"relock/internal/script"
	"relock/internal/test/redistest"
)

var (
	errBreak = errors.New("the connection broke") // it may have run
)

// A link sends commands to a Redis, and has the first of them fail as fails says.
type link struct {
	client rueidis.Client
	fails  []error
	end    context.CancelFunc // called with the last of fails, if set
	then   context.CancelFunc // called with each answer, if set
	sent   []script.Command
}

func (l *link) run(ctx context.Context, c script.Command) rueidis.RedisResult {
	l.sent = append(l.sent, c)
	if len(l.fails) == 0 {
		if l.then != nil {
			defer l.then()
		}
		return l.client.Do(ctx, l.client.B().Eval().Script(c.Script.Source()).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build())
	}
	err := l.fails[0]
	l.fails = l.fails[1:]
	if len(l.fails) == 0 && l.end != nil {
		l.end()
	}
	return rueidis.NewErrorResult(err)
}

// each runs fn with a link to each kind of server, and a Sender on it whose clock counts attempts
// and whose doubts are ten times as many.
func each(t *testing.T, fn func(t *testing.T, ctx context.Context, s *redis.Sender, l *link)) {
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		l := &link{client: server.Client(t)}
		ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
		defer end()
		fn(t, ctx, &redis.Sender{Run: l.run,
			Clock:  func() time.Duration { return time.Duration(len(l.sent)) },
			Doubts: func() uint32 { return uint32(10 * len(l.sent)) },
		}, l)
	})
}

func replies(lua string) script.Command {
	return script.Command{Script: script.New(lua), Keys: []string{"x"}}
}

func TestCallSendsUntilItIsAnswered(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
		l.fails = []error{errDial, errBreak, context.DeadlineExceeded}
		reply, err := s.Call(ctx, 10*time.Second, replies("return 7"))
		if n, e := reply.AsInt64(); err != nil || e != nil || n != 7 || len(l.sent) != 4 {
			t.Errorf("got %v, %v, %v after %d attempts, want 7 after 4", n, e, err, len(l.sent))
		}
	})
}

func TestCallEndsWithARefusal(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
		_, err := s.Call(ctx, 10*time.Second, replies("return redis.error_reply('WRONGTYPE no')"))
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || errors.Is(err, api.ErrUnavailable) || len(l.sent) != 1 {
			t.Errorf("got %v after %d attempts, want WRONGTYPE alone after 1", err, len(l.sent))
		}
	})
}

// The end of ctx, or of the bound, is told with what the client has said before.
func TestCallEndsWithItsContextOrItsBound(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
		own, end := context.WithCancel(ctx)
		l.fails, l.end = []error{errBreak, context.Canceled}, end
		_, err := s.Call(own, 10*time.Second, replies("return 7"))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errBreak) || !errors.Is(err, api.ErrUnavailable) || len(l.sent) != 2 {
			t.Errorf("of ctx: got %v after %d attempts", err, len(l.sent))
		}
		l.fails, l.end = []error{errBreak}, nil
		for range 1000 {
			l.fails = append(l.fails, context.DeadlineExceeded)
		}
		_, err = s.Call(ctx, 50*time.Millisecond, replies("return 7"))
		if ctx.Err() != nil || !errors.Is(err, errBreak) || !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "no answer within 50ms") {
			t.Errorf("of the bound: got %v", err)
		}
	})
}

func TestReleaseOfAll(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails []error
		reply string
		want  redis.Released
	}{
		{"released", nil, "return {0, 1, 3}", redis.Released{Receivers: 3}},
		{"short", nil, "return 3", redis.Released{Receivers: 3}},
		{"gone", nil, "return {0, 0, -1}", redis.Released{Lost: true, Receivers: -1}},
		{"gone, and never sent before", []error{errDial}, "return {0, 0, -1}", redis.Released{Lost: true, Receivers: -1}},
		{"gone, perhaps by the first attempt", []error{errBreak}, "return {0, 0, -1}", redis.Released{Resent: true, Receivers: -1}},
		{"gone, perhaps by the attempt before the last", []error{errBreak, errDial}, "return {0, 0, -1}", redis.Released{Resent: true, Receivers: -1}},
		{"gone in a failover", []error{rueidis.ErrClosing}, "return {0, 0, -1}", redis.Released{Lost: true, Receivers: -1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
				l.fails = c.fails
				if got, err := s.Release(ctx, releases(c.reply, true)); err != nil || !reflect.DeepEqual(got, c.want) || len(l.sent) != len(c.fails)+1 {
					t.Errorf("got %+v, %v after %d attempts, want %+v", got, err, len(l.sent), c.want)
				}
			})
		})
	}
}

func releases(reply string, known bool) redis.ReleaseCommand {
	return redis.ReleaseCommand{Command: replies(reply), Known: known}
}

// Of several commands each is sent, whatever became of those before. Only what was known to stand can
// be lost.
func TestReleaseOfSeveral(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
		got, err := s.Release(ctx, releases("return {0, 0, 4}", false), releases("return {0, 1, 3}", true))
		if want := (redis.Released{Receivers: 3}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
		got, err = s.Release(ctx, releases("return {0, 0, 4}", true), releases("return redis.error_reply('WRONGTYPE no')", true), releases("return {0, 1, 3}", true))
		if err == nil || !got.Lost || got.Receivers != 3 || len(got.Unconfirmed) != 1 || got.Unconfirmed[0].Script != l.sent[3].Script || len(l.sent) != 5 {
			t.Errorf("with a refusal: got %+v, %v after %d attempts", got, err, len(l.sent))
		}
	})
}

func TestReleaseThatIsNotConfirmed(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
		if _, err := s.Release(ctx, releases("return {1, 2}", true)); !errors.Is(err, script.ErrShape) || len(l.sent) != 1 {
			t.Errorf("of a bad reply: got %v after %d attempts", err, len(l.sent))
		}
		own, end := context.WithCancel(ctx)
		l.fails, l.end = []error{errBreak, context.Canceled}, end
		if _, err := s.Release(own, releases("return 3", true)); !errors.Is(err, api.ErrUnavailable) || !errors.Is(err, errBreak) || errors.Is(err, context.Canceled) {
			t.Errorf("of a time that is over: got %v", err)
		}
	})
}

// A leased is a primitive whose extension tells what it was asked.
type leased struct {
	kind.Leased
	reply string
}

func (p leased) Extend(op *kind.Op) script.Command {
	cmd := replies(p.reply)
	cmd.Args = []string{op.ID}
	if op.Away && op.FewestKeys {
		cmd.Args = append(cmd.Args, "away", "alone")
	}
	return cmd
}

func TestExtend(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails []error
		reply string
		want  redis.Extended
	}{
		{"alive", nil, "return 1", redis.Extended{Alive: true, Voided: true}},
		{"gone", nil, "return 0", redis.Extended{}},
		{"alive after an attempt that has not run", []error{errDial}, "return 1", redis.Extended{Alive: true, Sent: 1, Doubts: 10, Voided: true}},
		{"alive after one that may have run", []error{errDial, errBreak}, "return 1", redis.Extended{Alive: true, Sent: 2, Doubts: 20, Voided: true, Late: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
				l.fails = c.fails
				if got := s.Extend(ctx, leased{reply: c.reply}, &kind.Op{ID: "id"}); got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func TestExtendThatIsCutOffMayComeLate(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
		own, end := context.WithCancel(ctx)
		l.fails, l.end = []error{errBreak, context.Canceled}, end
		if got := s.Extend(own, leased{reply: "return 1"}, &kind.Op{ID: "id"}); got.Alive || got.Voided || !got.Late || got.Err != errBreak {
			t.Errorf("got %+v", got)
		}
	})
}

// While a slot moves, an extension without the key that remembers late commands is sent, at once;
// one that has to write that key waits until the slot has moved.
func TestExtendWhileASlotMoves(t *testing.T) {
	const moving = "if ARGV[2] == 'away' and ARGV[3] == 'alone' and ARGV[1] == '' then return 1 end return redis.error_reply('TRYAGAIN')"
	each(t, func(t *testing.T, ctx context.Context, s *redis.Sender, l *link) {
		want := redis.Extended{Alive: true, Sent: 1, Doubts: 10}
		if got := s.Extend(ctx, leased{reply: moving}, &kind.Op{ID: "id"}); got != want || len(l.sent) != 2 {
			t.Errorf("got %+v after %d attempts, want %+v after 2", got, len(l.sent), want)
		}
		own, end := context.WithCancel(ctx)
		l.then = end
		void := kind.Op{ID: "id", Move: kind.Move{Void: []string{"late"}}}
		if got := s.Extend(own, leased{reply: moving}, &void); got.Alive || got.Voided || !script.IsTryAgain(got.Err) {
			t.Errorf("with ids to void: got %+v, want TRYAGAIN", got)
		}
	})
}
