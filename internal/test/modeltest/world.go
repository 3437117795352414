package modeltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"relock/rlock"
)

// A Model is the adapter of one kind of lock. Its methods are called by one goroutine,
// while nothing else in the bubble runs.
type Model interface {
	// Ops are the operations that may be drawn, the same list each time.
	Ops() []Op

	// Gone says that the process on this seat was closed (its sections end with
	// ErrClosed, its waiters return ErrClosed, what it held is released) or killed (Redis
	// keeps what it held until the lease is over; its calls are never heard of again).
	Gone(seat *Seat, killed bool)

	// Check is called whenever the world is quiet, with the calls that ended since the
	// last time, all of them at this very instant. It judges their results, and compares
	// the model with what the callers were told and with what Redis says. What is wrong
	// goes to World.Failf.
	Check(ended []*Call)

	// Release begins to give back one of the things that live processes hold, or to
	// cancel one waiting call, and returns false if there is none. It ends a run.
	Release() bool

	// Left is called when all is given back and every lease is over, before the last
	// sessions are closed: to look at their books.
	Left()
}

// Op is an operation that may be drawn.
type Op struct {
	Name   string
	Weight int
	// Do begins it, with what it draws from r and an idle actor, and returns false if
	// there is nothing to do it with just now.
	Do func(r *rand.Rand, a *Actor) bool
}

// Actor is somebody in a process who does one thing at a time.
type Actor struct {
	N    int
	Seat *Seat
	call *Call // under way, or nil
}

func (a *Actor) String() string { return fmt.Sprintf("%d.%d/%c", a.Seat.N, a.Seat.Life, 'a'+a.N) }

// Call is one operation of an actor.
type Call struct {
	Actor  *Actor
	Life   int // of the seat when it began
	Text   string
	Ctx    context.Context // of its own
	Cancel context.CancelFunc
	Waits  bool // it may be under way while the world is quiet
	Began  time.Time
	Data   any   // the adapter's
	Err    error // once it has ended
	done   bool
}

// Lost reports whether the call's process is gone.
func (c *Call) Lost() bool { return c.Actor.Seat.Session == nil || c.Actor.Seat.Life != c.Life }

// World is where one run happens.
type World struct {
	Redis  *miniredis.Miniredis
	Config rlock.Config // in effect
	Seats  []*Seat
	Keep   []string // keys that may be left in the end

	story
	steps int
	model Model
	stir  chan struct{} // capacity 1: something ended
	down  sync.WaitGroup
	all   []*Call   // under way
	cut   time.Time // when a process was last cut off for a moment

	mu       sync.Mutex // guards what follows, and Call.Err and Call.done
	ended    []*Call
	closing  int // processes
	closeErr error
}

// A story is what happened, for the message of a failed run.
type story struct {
	seed   uint64
	step   int
	began  time.Time
	log    []string
	failed string
}

// Calm reports whether no process was cut off within the last d. Whoever was may have
// missed a message, and may take a moment to subscribe again.
func (w *World) Calm(d time.Duration) bool { return w.cut.IsZero() || time.Since(w.cut) > d }

// Begin has an idle actor do something: fn runs in a goroutine of its own, with a context
// derived from parent that Call.Cancel ends, and returns what becomes Call.Err. What else
// it finds out it may leave in data. waits says that it may take time.
func (w *World) Begin(a *Actor, parent context.Context, waits bool, data any, text string, fn func(context.Context) error) *Call {
	c := &Call{Actor: a, Life: a.Seat.Life, Text: text, Waits: waits, Began: time.Now(), Data: data}
	c.Ctx, c.Cancel = context.WithCancel(parent)
	a.call = c
	w.all = append(w.all, c)
	w.Logf("%v: %s", a, text)
	go func() {
		err := fn(c.Ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		c.Err, c.done = err, true
		w.ended = append(w.ended, c)
		w.stirred()
	}()
	return c
}

// Waiting returns the calls of live processes that are under way, oldest first.
func (w *World) Waiting() (calls []*Call) {
	for _, c := range w.all {
		if !c.Lost() {
			calls = append(calls, c)
		}
	}
	return calls
}

// Section is a context whose end is noted.
type Section struct {
	context.Context
	mu    sync.Mutex
	ended time.Time
}

// Watch notes when ctx ends, and has the model look at the world in that instant.
func (w *World) Watch(ctx context.Context) *Section {
	s := &Section{Context: ctx}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		s.ended = time.Now()
		s.mu.Unlock()
		w.stirred()
	})
	return s
}

// Ended returns when the section ended; zero while it is open.
func (s *Section) Ended() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

func (w *World) stirred() {
	select {
	case w.stir <- struct{}{}:
	default:
	}
}

// Failf notes what is wrong. The first one counts, and ends the run.
func (w *World) Failf(format string, args ...any) {
	if w.failed == "" {
		w.failed = fmt.Sprintf(format, args...)
		w.Logf("FAILED: %s", w.failed)
	}
}

// Logf adds a line to the list of operations that is printed when the run fails.
func (w *World) Logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%4d %12v  %s", w.step, time.Since(w.began), fmt.Sprintf(format, args...)))
}

// Failed reports whether something was wrong already.
func (w *World) Failed() bool { return w.failed != "" }

// settle waits until the world is quiet and has the model judge it.
func (w *World) settle() {
	synctest.Wait()
	select {
	case <-w.stir:
	default:
	}
	w.mu.Lock()
	ended := w.ended
	w.ended = nil
	if w.closing > 0 || w.closeErr != nil {
		w.Failf("%d processes cannot end; Close returned: %v", w.closing, w.closeErr)
	}
	kept := w.all[:0]
	for _, c := range w.all {
		if !c.done {
			kept = append(kept, c)
		} else if c.Actor.call == c {
			c.Actor.call = nil
		}
	}
	w.all = kept
	w.mu.Unlock()
	var judged []*Call
	for _, c := range ended {
		if c.Life == c.Actor.Seat.Life && !c.Actor.Seat.killed { // the dead tell nothing
			w.Logf("%v: %s -> %v", c.Actor, c.Text, c.Err)
			judged = append(judged, c)
		}
	}
	for _, c := range w.Waiting() {
		if !c.Waits {
			w.Failf("%v: %s is still under way", c.Actor, c.Text)
		}
	}
	if !w.Failed() {
		w.model.Check(judged)
	}
}

// longestLook is how long time passes at most without a look at the world.
const longestLook = 10 * time.Second

// pass lets time go by, and has the model look whenever something ends.
func (w *World) pass(d time.Duration) {
	for d > 0 && !w.Failed() {
		began := time.Now()
		timer := time.NewTimer(min(d, longestLook))
		select {
		case <-timer.C:
		case <-w.stir:
		}
		timer.Stop()
		d -= time.Since(began)
		w.settle()
	}
}

// tell returns it as it is printed.
func (s *story) tell() string {
	return fmt.Sprintf("seed %d, after step %d: %s\nstep      at       what (process is seat.life)\n%s",
		s.seed, s.step, s.failed, strings.Join(s.log, "\n"))
}
