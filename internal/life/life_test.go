package life_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"relock/internal/api"
	"relock/internal/life"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over reports whether a channel is closed, when all goroutines of the bubble wait.
func over(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestIdleWhenAllHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := life.New()
		if !over(l.Idle()) {
			t.Error("a life that nothing has entered is not idle")
		}
		must(t, l.Enter())
		must(t, l.Enter())
		first, second := l.Idle(), l.Idle()
		l.Leave()
		if over(first) {
			t.Error("it is idle with one inside")
		}
		l.Leave()
		if !over(first) || !over(second) {
			t.Error("it is not idle when both have left")
		}
		must(t, l.Enter())
		if over(l.Idle()) {
			t.Error("it is idle although something has entered anew")
		}
		l.Leave()
	})
}

func TestNothingEntersBehindRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := life.New()
		must(t, l.Enter())
		l.Refuse()
		if l.Closing.Err() == nil || l.Context.Err() != nil {
			t.Errorf("Closing %v, Context %v; want the first alone to have ended", l.Closing.Err(), l.Context.Err())
		}
		never := func(context.Context) { t.Error("it ran") }
		for what, err := range map[string]error{
			"Enter": l.Enter(), "EnterWith": l.EnterWith(context.Background()), "Go": l.Go(context.Background(), never),
		} {
			if !errors.Is(err, api.ErrClosed) {
				t.Errorf("%s: %v, want ErrClosed", what, err)
			}
		}
		idle := l.Idle()
		l.Leave()
		if !over(idle) {
			t.Error("it is not idle when what was inside has left")
		}
	})
}

// Either something has entered before Refuse returns, and Idle waits for it, or it is refused.
func TestEnterRacesWithRefuse(t *testing.T) {
	for range 200 {
		l := life.New()
		var inside, late sync.WaitGroup
		for range 4 {
			late.Go(func() {
				for l.Enter() == nil {
					inside.Go(l.Leave)
				}
			})
		}
		l.Refuse()
		<-l.Idle()
		if l.Enter() == nil {
			t.Fatal("it was entered behind Refuse")
		}
		late.Wait()
		inside.Wait()
		<-l.Idle()
	}
}

func TestEnterWithABadContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := life.New()
		var none context.Context
		ended, end := context.WithCancelCause(context.Background())
		end(errors.New("no more"))
		never := func(context.Context) { t.Error("it ran") }
		for _, err := range []error{l.EnterWith(none), l.Go(none, never)} {
			if !errors.Is(err, api.ErrArgument) {
				t.Errorf("nil: %v", err)
			}
		}
		for _, err := range []error{l.EnterWith(ended), l.Go(ended, never)} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ended: %v", err)
			}
		}
		if !over(l.Idle()) {
			t.Error("what was refused counts as inside")
		}
	})
}

func TestGoEndsWithItsContextAndWithRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		l := life.New()
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
		until := func(ctx context.Context) {
			if ctx.Value(key{}) != "value" {
				t.Error("its context is not derived from the caller's")
			}
			<-ctx.Done()
		}
		must(t, l.Go(ctx, until))
		idle := l.Idle()
		if over(idle) {
			t.Error("it is idle while fn runs")
		}
		cancel()
		if !over(idle) {
			t.Error("fn goes on behind the end of ctx")
		}
		must(t, l.Go(context.WithoutCancel(ctx), until))
		idle = l.Idle()
		l.Refuse()
		if !over(idle) {
			t.Error("fn goes on behind Refuse")
		}
		l.Background.Wait()
	})
}

func TestDrained(t *testing.T) {
	for _, c := range []struct {
		name string
		ends func(l *life.Life, cancel context.CancelFunc)
		want error
	}{
		{"when the last has left", func(l *life.Life, _ context.CancelFunc) { l.Leave() }, nil},
		{"when Close begins", func(l *life.Life, _ context.CancelFunc) { l.Refuse() }, nil},
		{"when ctx ends", func(_ *life.Life, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"when both", func(l *life.Life, cancel context.CancelFunc) { l.Leave(); cancel() }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := life.New()
				must(t, l.Enter())
				must(t, l.Enter()) // what is in a section goes on
				l.Leave()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				drained := make(chan error, 1)
				go func() { drained <- l.Drained(ctx) }()
				synctest.Wait()
				select {
				case err := <-drained:
					t.Fatalf("it was over too soon: %v", err)
				default:
				}
				c.ends(l, cancel)
				if err := <-drained; !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}

// What attends ends with Close, which waits for it, and a session that drains does not.
func TestAttend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := life.New()
		var ended atomic.Bool
		must(t, l.Attend(context.Background(), func(ctx context.Context) {
			<-ctx.Done()
			ended.Store(true)
		}))
		must(t, l.Enter())
		drained := make(chan error, 1)
		go func() { drained <- l.Drained(context.Background()) }()
		synctest.Wait()
		if len(drained) != 0 {
			t.Error("drained before the last has left")
		}
		l.Leave()
		must(t, <-drained)
		must(t, l.Drained(context.Background()))
		select {
		case <-l.Idle():
			t.Error("idle before the one that attends has left")
		default:
		}
		if ended.Load() {
			t.Error("it has ended before Close")
		}
		l.Refuse()
		if <-l.Idle(); !ended.Load() {
			t.Error("idle, and it has not ended")
		}
	})
}

func TestCloseEndsOnce(t *testing.T) {
	l := life.New()
	ends, failed := 0, errors.New("failed")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := l.Close(func() error { ends++; return failed }); err != failed {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if ends != 1 {
		t.Errorf("it ended %d times", ends)
	}
	l.Stop()
	if l.Closing.Err() == nil || l.Context.Err() == nil {
		t.Error("Stop leaves a context")
	}
}

// What does not end by itself is severed when patience is over; what does not end then either is
// left behind.
func TestFarewell(t *testing.T) {
	for _, c := range []struct {
		name           string
		endsBy, severs bool
		blocks         bool // what severs
		want           time.Duration
	}{
		{"by itself", true, false, false, 0},
		{"when it is severed", false, true, false, time.Second},
		{"never", false, false, false, 2 * time.Second},
		{"never, nor does what severs", false, false, true, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := life.New()
				stuck := make(chan struct{})
				var severed atomic.Int32
				l.Background.Go(func() { <-stuck })
				free := sync.OnceFunc(func() { close(stuck) })
				began := time.Now()
				l.Farewell(time.Second, func() {
					if c.endsBy {
						free()
					}
				}, func() {
					severed.Add(1)
					if c.severs {
						free()
					}
					if c.blocks {
						<-stuck
					}
				})
				if took := time.Since(began); took != c.want || severed.Load() != 1 {
					t.Errorf("it took %v, and severed %d times, want %v and 1", took, severed.Load(), c.want)
				}
				free()
			})
		})
	}
}
