package life

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"relock/internal/api"
)

// A Life is that of one session. Its mutex comes after those of locks, and none but those of Groups is taken under it.
type Life struct {
	Closing    context.Context // ends when Close begins
	Context    context.Context // ends when nothing may go on in the background
	Background Group           // counts every goroutine of the session

	// Draining: the session shuts down, and serves only callers in open sections. Drains ends then.
	Draining atomic.Bool
	Drains   context.Context

	drain, refuse, stop context.CancelFunc
	begun               atomic.Bool   // a Close
	over                chan struct{} // closed when that has returned
	err                 error         // of it; read behind over

	inside  Group // what has entered and not left
	awaited Group // what of that a session that drains waits for

	mu     sync.Mutex
	closed bool // nothing enters any more
}

// New returns the life of a session that is open.
func New() *Life {
	l := &Life{over: make(chan struct{})}
	l.Closing, l.refuse = context.WithCancel(context.Background())
	l.Drains, l.drain = context.WithCancel(l.Closing)
	l.Context, l.stop = context.WithCancel(context.Background())
	return l
}

// Drain has the session shut down.
func (l *Life) Drain() {
	l.Draining.Store(true)
	l.drain()
}

// Enter begins something that Close waits for: a lock that the session has to do with, or a call
// that concerns none. Leave ends it. Errors: [api.ErrClosed] behind Refuse.
func (l *Life) Enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return api.ErrClosed
	}
	l.inside.Add(1)
	l.awaited.Add(1)
	return nil
}

// Leave ends what Enter has begun.
func (l *Life) Leave() {
	l.inside.Add(-1)
	l.awaited.Add(-1)
}

// EnterWith is Enter for a call with a context that has not ended. It runs code of the caller's
// context, and has entered nothing meanwhile: that code may block, or end the goroutine. Errors: also
// [api.ErrNilContext], and ctx's.
func (l *Life) EnterWith(ctx context.Context) error {
	if ctx == nil {
		return api.ErrNilContext
	}
	var ended error
	if ctx.Err() != nil {
		ended = api.OfContext(ctx)
	}
	err := l.Enter()
	if err == nil && ended != nil {
		l.Leave()
		err = ended
	}
	return err
}

// Go runs fn in a goroutine of the session. Its context ends when ctx does or when Close begins;
// Close waits for fn to return. Errors: those of EnterWith; then fn does not run.
func (l *Life) Go(ctx context.Context, fn func(ctx context.Context)) error {
	return l.start(ctx, 0, fn)
}

// Attend is Go for what lasts until it is ended, as an observer does: a session that drains does not
// wait for it.
func (l *Life) Attend(ctx context.Context, fn func(ctx context.Context)) error {
	return l.start(ctx, 1, fn)
}

// start is Go, and Attend with aside 1.
func (l *Life) start(ctx context.Context, aside int, fn func(ctx context.Context)) error {
	if err := l.EnterWith(ctx); err != nil {
		return err
	}
	l.awaited.Add(-aside)
	l.Background.Go(func() {
		defer l.Leave()
		defer l.awaited.Add(aside)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.Closing, cancel)()
		fn(ctx)
	})
	return nil
}

// Idle returns a channel that is closed when nothing is inside.
func (l *Life) Idle() <-chan struct{} { return l.inside.Idle() }

// Drained waits until nothing is inside but what is aside, or Close begins, or ctx ends, whose error
// it returns then.
func (l *Life) Drained(ctx context.Context) error {
	calm := l.awaited.Idle()
	select {
	case <-calm:
	case <-l.Closing.Done():
	case <-ctx.Done():
		select {
		case <-calm:
		default:
			return api.OfContext(ctx)
		}
	}
	return nil
}

// Close has end end the session, once; each call waits for it and returns its error. They wait at a channel: in a
// testing/synctest bubble no time passes while a goroutine waits for a sync.Once, and end may need some.
func (l *Life) Close(end func() error) error {
	if l.begun.Swap(true) {
		<-l.over
		return l.err
	}
	defer close(l.over) // deferred: end may panic, or end the goroutine
	l.err = end()
	return l.err
}

// Refuse lets nothing enter from now on. Closing has ended by the time that something is refused.
func (l *Life) Refuse() {
	l.refuse()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// Stop ends what goes on in the background.
func (l *Life) Stop() {
	l.refuse()
	l.stop()
}

// Farewell runs end, and waits for it and for every goroutine. What does not end within patience
// is severed, and is given as long again; then it is left behind.
func (l *Life) Farewell(patience time.Duration, end, sever func()) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		end()
		l.Background.Wait()
	}()
	Await(gone, patience)
	over := make(chan struct{})
	go func() {
		defer close(over)
		sever() // also if all is gone: it frees what there is
		<-gone
	}()
	Await(over, patience)
}

// Await waits until done is closed, for so long at most.
func Await(done <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
