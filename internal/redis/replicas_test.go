package redis_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
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

// A master runs commands on a Redis, and plays its replicas.
type master struct {
	client rueidis.Client
	got    []int64                    // what each WAIT returns; the last one stands for all that follow
	err    error                      // of each WAIT
	asked  func(context.Context) bool // may be nil; false: nothing is answered while ctx lasts
	then   context.CancelFunc         // called with each answer, if set
	bounds []time.Duration
}

func (m *master) run(ctx context.Context, c script.Command) rueidis.RedisResult {
	return m.client.Do(ctx, m.client.B().Eval().Script(c.Script.Source()).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build())
}

func (m *master) Replicated(ctx context.Context, cs []script.Command, n int, bound time.Duration) (replies []rueidis.RedisResult, acknowledged int64, err error) {
	m.bounds = append(m.bounds, bound)
	if m.asked != nil && !m.asked(ctx) {
		<-ctx.Done()
		return nil, 0, ctx.Err()
	}
	for _, c := range cs {
		replies = append(replies, m.run(ctx, c))
	}
	if m.then != nil {
		defer m.then()
	}
	if len(m.got) > 1 {
		defer func() { m.got = m.got[1:] }()
	}
	return replies, m.got[0], m.err
}

// A leasedHash is a lock that its owner has if the hash of it has a field for the owner or the id. An
// extension that does not say Away counts as one of a Hold.
type leasedHash struct{ kind.Leased }

var extendScript = script.New(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if ARGV[2] ~= 'away' then redis.call('HINCRBY', KEYS[1], 'extended', 1) end
return 1`)

func (leasedHash) Extend(op *kind.Op) script.Command {
	who, way := op.Owner, "here"
	if len(op.IDs) > 0 {
		who = op.IDs[0]
	}
	if op.Away {
		way = "away"
	}
	return script.Command{Script: extendScript, Keys: []string{"x"}, Args: []string{who, way}}
}

// eachAsker runs fn with an Asker that wants two replicas of each kind of server; in Redis "owner" holds
// the lock, and so does the hold "id".
func eachAsker(t *testing.T, fn func(t *testing.T, ctx context.Context, a *redis.Asker, m *master)) {
	redistest.Each(t, func(t *testing.T, server *redistest.Server) {
		m := &master{client: server.Client(t), got: []int64{2}}
		ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
		defer end()
		for _, field := range []string{"owner", "id"} {
			if err := server.Do(t, "HSET", "x", field, "1").Error(); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Do(t, "PEXPIRE", "x", "60000").Error(); err != nil {
			t.Fatal(err)
		}
		fn(t, ctx, &redis.Asker{Run: m, Want: 2, Timeout: time.Second, Answer: time.Second}, m)
	})
}

func TestAGrantThatReplicasAcknowledge(t *testing.T) {
	eachAsker(t, func(t *testing.T, ctx context.Context, a *redis.Asker, m *master) {
		for _, op := range []kind.Op{
			{Owner: "owner", Private: true, Lease: time.Minute},
			{Owner: "named", ID: "id", Lease: time.Minute},
			{Owner: "renamed", Private: true, ID: "id", Known: kind.Known{Held: 1}, Lease: time.Minute},
		} {
			if err := a.Granted(ctx, leasedHash{}, &op); err != nil {
				t.Errorf("%+v: %v", op, err)
			}
		}
		if n, err := m.client.Do(ctx, m.client.B().Hexists().Key("x").Field("extended").Build()).AsBool(); n || err != nil {
			t.Errorf("the question has moved the end: %v, %v", n, err)
		}
	})
}

// A server that does not have the grant is not the one that gave it.
func TestAGrantThatIsGone(t *testing.T) {
	eachAsker(t, func(t *testing.T, ctx context.Context, a *redis.Asker, m *master) {
		for _, op := range []kind.Op{
			{Owner: "another", Private: true, Lease: time.Minute},
			{Owner: "owner", ID: "another", Lease: time.Minute}, // the owner is there by another hold
		} {
			err := a.Granted(ctx, leasedHash{}, &op)
			if !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "gone") || script.Classify(err) != script.Unknown {
				t.Errorf("%+v: got %v, want that it is gone, of unknown outcome", op, err)
			}
		}
	})
}

func TestAGrantThatIsNotAcknowledged(t *testing.T) {
	op := kind.Op{Owner: "owner", Private: true, Lease: time.Minute}
	eachAsker(t, func(t *testing.T, ctx context.Context, a *redis.Asker, m *master) {
		m.got = []int64{1}
		err := a.Granted(ctx, leasedHash{}, &op)
		if !errors.As(err, new(*redis.TooFew)) || !errors.Is(err, api.ErrUnavailable) ||
			!strings.Contains(err.Error(), "1 of 2 replicas") || script.Classify(err) != script.Unknown {
			t.Errorf("with one of two: got %v", err)
		}

		m.got, m.err = []int64{0}, m.client.Do(ctx, m.client.B().Arbitrary("NOSUCHCOMMAND").Build()).Error()
		err = a.Granted(ctx, leasedHash{}, &op)
		if !errors.Is(err, api.ErrUnavailable) || script.Classify(err) != script.Unknown {
			t.Errorf("with an error reply: got %v, of outcome %d; the grant stands", err, script.Classify(err))
		}

		own, end := context.WithCancel(ctx)
		m.err, m.asked = nil, func(context.Context) bool { end(); return false }
		if err := a.Granted(own, leasedHash{}, &op); !errors.Is(err, context.Canceled) {
			t.Errorf("with a context that ends: got %v", err)
		}
	})
}

// The replicas get half of the lease at most, and so much less than is left of ctx that their
// number can be told.
func TestBoundOfTheWait(t *testing.T) {
	eachAsker(t, func(t *testing.T, ctx context.Context, a *redis.Asker, m *master) {
		a.Timeout = 4 * time.Second
		own, end := context.WithTimeout(ctx, 3*time.Second)
		defer end()
		for _, c := range []struct {
			ctx         context.Context
			lease       time.Duration
			least, most time.Duration
		}{
			{ctx, time.Minute, 4 * time.Second, 4 * time.Second},
			{ctx, 2 * time.Second, time.Second, time.Second},
			{ctx, time.Millisecond, time.Millisecond, time.Millisecond},
			{own, time.Minute, time.Millisecond, 2600 * time.Millisecond},
		} {
			m.bounds = nil
			err := a.Granted(c.ctx, leasedHash{}, &kind.Op{Owner: "owner", Private: true, Lease: c.lease})
			if err != nil || len(m.bounds) != 1 || m.bounds[0] < c.least || m.bounds[0] > c.most {
				t.Errorf("a lease of %v: waited for %v, %v, want %v to %v", c.lease, m.bounds, err, c.least, c.most)
			}
		}
	})
}

// An extension is sent again until the replicas have it, since the server that had it may be gone.
func TestExtendUntilReplicasHaveIt(t *testing.T) {
	eachAsker(t, func(t *testing.T, ctx context.Context, a *redis.Asker, m *master) {
		s := &redis.Sender{Run: m.run, Clock: func() time.Duration { return 0 }, Doubts: func() uint32 { return 0 }}
		op := kind.Op{Owner: "owner", Private: true, Lease: time.Minute}
		m.got = []int64{0, 1, 2}
		if r := a.Extend(ctx, s, leasedHash{}, &op); r.Err != nil || !r.Alive {
			t.Errorf("got %+v", r)
		}
		sent, err := m.client.Do(ctx, m.client.B().Hget().Key("x").Field("extended").Build()).AsInt64()
		if sent != 3 || err != nil || len(m.bounds) != 3 {
			t.Errorf("it was sent %d times (%v), and asked for %d times, want 3 and 3", sent, err, len(m.bounds))
		}

		m.got = []int64{1}
		own, end := context.WithCancel(ctx)
		m.then = end
		if r := a.Extend(own, s, leasedHash{}, &op); !errors.As(r.Err, new(*redis.TooFew)) {
			t.Errorf("when its time is over: got %+v, want the number of replicas", r)
		}
		m.then = nil

		own, end = context.WithCancel(ctx)
		calls := 0
		m.asked = func(context.Context) bool {
			if calls++; calls == 2 {
				end()
			}
			return calls == 1
		}
		if r := a.Extend(own, s, leasedHash{}, &op); !errors.As(r.Err, new(*redis.TooFew)) || calls != 2 {
			t.Errorf("when its time is over in a wait: got %+v after %d waits, want the number of replicas after 2", r, calls)
		}
		m.asked = nil

		m.bounds = nil
		if r := a.Extend(ctx, s, leasedHash{}, &kind.Op{Owner: "another", Private: true}); r.Alive || r.Err != nil || m.bounds != nil {
			t.Errorf("of what is gone: got %+v, asked for %d times", r, len(m.bounds))
		}
		a.Want = 0
		if r := a.Extend(ctx, s, leasedHash{}, &op); !r.Alive || r.Err != nil || m.bounds != nil {
			t.Errorf("without replicas: got %+v, asked for %d times", r, len(m.bounds))
		}
	})
}

func TestCheck(t *testing.T) {
	eachAsker(t, func(t *testing.T, ctx context.Context, a *redis.Asker, m *master) {
		reply := func(text string) error { // an error of the server
			return m.client.Do(ctx, m.client.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(text).Build()).Error()
		}
		unknown := m.client.Do(ctx, m.client.B().Arbitrary("NOSUCHCOMMAND").Build()).Error()
		for _, c := range []struct {
			name    string
			want    int
			got     int64
			err     error
			cluster bool
			says    error // nil: none
			logs    bool
		}{
			{"none are wanted", 0, 0, errBreak, false, nil, false},
			{"enough", 2, 2, nil, false, nil, false},
			{"too few", 2, 1, nil, false, nil, true},
			{"too few of one node", 2, 1, nil, true, nil, false},
			{"no answer", 2, 0, errBreak, false, api.ErrUnavailable, false},
			{"no answer of one node", 2, 0, errBreak, true, nil, false},
			{"denied", 2, 0, reply("NOPERM no"), false, api.ErrConfig, false},
			{"denied by a node", 2, 0, reply("NOPERM no"), true, api.ErrConfig, false},
			{"unknown", 2, 0, unknown, false, api.ErrConfig, false},
		} {
			var log bytes.Buffer
			m.got, m.err, a.Want = []int64{c.got}, c.err, c.want
			err := a.Check(ctx, c.cluster, slog.New(slog.NewTextHandler(&log, nil)))
			if !errors.Is(err, c.says) || (log.Len() > 0) != c.logs {
				t.Errorf("%s: got %v, and the log %q", c.name, err, log.String())
			}
		}
		if slices.Max(m.bounds) > 100*time.Millisecond {
			t.Errorf("a session that begins waits for %v", slices.Max(m.bounds))
		}
	})
}
