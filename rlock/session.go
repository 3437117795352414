package rlock

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/idgen"
	"relock/internal/keyname"
	"relock/pubsub"
)

// Session ties a process to one Redis deployment. It holds what all locks of the
// process share: the client, the subscriptions, the watchdog. Services have one.
// Safe for concurrent use.
type Session struct {
	id     string
	client rueidis.Client
	own    bool // Close closes client
	cfg    Config
	log    *slog.Logger
	hub    *pubsub.Hub
	owners *idgen.Owners
	names  keyname.Style
	pub    string // PUBLISH or SPUBLISH, what the hub subscribes for
	// suspect: the connection is being made, or failed last; see runMulti.
	suspect *atomic.Bool
	deaf    atomic.Bool // it could not subscribe to its own channel
	start   time.Time

	ctx        context.Context // ends when nothing may go on in the background
	stop       context.CancelFunc
	background sync.WaitGroup // every goroutine of the session
	kick       chan struct{}  // wakes the watchdog
	closing    sync.Once
	closeErr   error

	mu          sync.Mutex // guards what follows, and the tenures, holds and lines
	closed      bool
	active      int           // operations under way
	idle        chan struct{} // made by Close, closed when active is 0
	held        map[tenureKey]*tenure
	pending     map[*tenure]struct{} // acquisitions under way
	lines       map[lineKey]*line
	places      map[string]*place // of waiters in Redis, by Op.ID
	placesDue   time.Duration     // when the first of them must be heard of
	spareLines  []*line
	agenda      agenda
	armed       time.Duration // when the watchdog wakes up
	undoings    []undoing
	undoer      bool // a goroutine works them off
	unconfirmed int  // releases that were given up
	later       []func()

	// See releaseContext.
	releasing      context.Context
	stopReleasing  context.CancelFunc
	releasingUntil time.Duration
}

type tenureKey struct{ key, owner string }

// sessionChannel is where ForceUnlock tells a session's holders.
const sessionChannel = "relock_session:"

// refusalRetry is how often a refused subscription is tried again: seldom enough that
// an idle waiter stays below one command a second.
const refusalRetry = 5 * time.Second

// NewSession ties this process to the deployment that client was built for:
// standalone, Sentinel or Cluster. The caller keeps owning client, and closes it
// after the session. Locks run best, and most robustly, on a client with the options
// that [Dial] sets; never set ConnLifetime, with which rueidis may run a script
// twice.
//
// It blocks until Redis has answered a PING and the session's own channel is
// subscribed to, or ctx ends. Errors: [ErrConfig] for a bad field or a nil client,
// else the first PING's error.
func NewSession(ctx context.Context, client rueidis.Client, cfg Config) (*Session, error) {
	return newSession(ctx, client, cfg, new(atomic.Bool))
}

func newSession(ctx context.Context, client rueidis.Client, cfg Config, suspect *atomic.Bool) (*Session, error) {
	switch {
	case ctx == nil:
		return nil, fmt.Errorf("new session: %w: ctx is nil; use context.Background()", ErrArgument)
	case client == nil:
		return nil, fmt.Errorf("new session: %w: client is nil; it must be a rueidis.Client", ErrConfig)
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	if err := ping(ctx, client); err != nil {
		return nil, fmt.Errorf("new session: ping: %w", err)
	}
	s := &Session{
		id: cfg.ID, client: client, cfg: cfg, log: cfg.Logger, start: time.Now(),
		names: keyname.Style{Cluster: client.Mode() == rueidis.ClientModeCluster},
		hub:   pubsub.NewHub(client, pubsub.Logger(cfg.Logger), pubsub.RefusalRetry(refusalRetry)),
		kick:  make(chan struct{}, 1), armed: never, suspect: suspect,
		held: map[tenureKey]*tenure{}, pending: map[*tenure]struct{}{}, lines: map[lineKey]*line{},
		places: map[string]*place{}, placesDue: never,
	}
	if s.id == "" {
		s.id = idgen.Session()
		s.owners = idgen.NewOwners(s.id, 0)
	} else {
		s.owners = idgen.NewOwners(s.id, idgen.RandomBase())
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.listenForRevocations(ctx); err != nil {
		s.stop()
		s.hub.Close()
		return nil, fmt.Errorf("new session: %w", err)
	}
	s.loadScripts(ctx)
	s.suspect.Store(false) // dialling the subscriber connection is no reason
	s.background.Go(s.watch)
	return s, nil
}

// ping returns nil as soon as one node answers: in a Cluster others may be down.
func ping(ctx context.Context, client rueidis.Client) error {
	err := client.Do(ctx, client.B().Ping().Build()).Error()
	if err == nil || client.Mode() != rueidis.ClientModeCluster {
		return err
	}
	for _, node := range client.Nodes() {
		if ctx.Err() != nil {
			return err
		}
		if e := node.Do(ctx, node.B().Ping().Build()).Error(); e == nil {
			return nil
		}
	}
	return err
}

// listenForRevocations finds out how releases are published here and subscribes to
// the session's own channel. Where subscribing is refused the session works without:
// a forced unlock is then noticed at the next renewal.
func (s *Session) listenForRevocations(ctx context.Context) error {
	s.pub = "PUBLISH"
	sharded, err := s.hub.Sharded(ctx)
	if err == nil && sharded {
		s.pub = "SPUBLISH"
	}
	if err == nil {
		_, err = s.hub.ListenFunc(ctx, sessionChannel+s.id, true, s.revoked)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	if err != nil {
		s.log.Warn("relock: cannot subscribe; waiters will poll", "error", err)
		s.deaf.Store(true)
		s.background.Go(s.keepAskingForRevocations)
	}
	return nil
}

// keepAskingForRevocations subscribes to the session's channel when that is allowed
// again. The hub asks the server every refusalRetry, not at each of these calls.
func (s *Session) keepAskingForRevocations() {
	for {
		if _, err := s.hub.ListenFunc(s.ctx, sessionChannel+s.id, true, s.revoked); err == nil {
			s.deaf.Store(false)
			s.recheck()
			return
		}
		timer := time.NewTimer(jitter(refusalRetry / 5))
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// ID returns the session's id: a random UUID unless Config.ID was set.
func (s *Session) ID() string { return s.id }

// Config returns the configuration in use: the one given, with the defaults filled in.
func (s *Session) Config() Config { return s.cfg }

// Deaf reports whether the session is not allowed to subscribe to its own channel, and so
// cannot be told anything.
func (s *Session) Deaf() bool { return s.deaf.Load() }

// Cluster reports whether the deployment is a Redis Cluster.
func (s *Session) Cluster() bool { return s.names.Cluster }

// now is the time since the session began, by the monotonic clock.
func (s *Session) now() time.Duration { return time.Since(s.start) }

// enter begins an operation that Close waits for.
func (s *Session) enter() error {
	if s == nil {
		return fmt.Errorf("%w: the session is nil; make one with Dial or NewSession", ErrArgument)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.active++
	return nil
}

// leave ends it.
func (s *Session) leave() {
	s.mu.Lock()
	s.active--
	if s.active == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
	s.unlock()
}

// afterUnlock has fn called when the mutex is released: for what is slow or calls
// somebody else's code. Session.mu must be held.
func (s *Session) afterUnlock(fn func()) { s.later = append(s.later, fn) }

// unlock releases the mutex and does what was put off.
func (s *Session) unlock() {
	later := s.later
	s.later = nil
	s.mu.Unlock()
	for _, fn := range later {
		fn()
	}
}

// endedErr says why a tenure ended. Session.mu must be held.
func (s *Session) endedErr(t *tenure) error {
	if s.closed && !t.wasLost {
		return ErrClosed
	}
	return ErrLost
}

// Close releases what is still held, wakes waiters with [ErrClosed], ends the
// contexts of critical sections with the cause ErrClosed, and returns when no
// goroutine and no subscription of the session is left. It takes a round trip or
// two, at most about twice Config.ReleaseTimeout when Redis does not answer; then it
// returns an error, and what could not be released ends with its lease. A second
// call does nothing and returns the same.
func (s *Session) Close() error {
	if s == nil {
		return fmt.Errorf("close: %w: the session is nil", ErrArgument)
	}
	s.closing.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Session) close() error {
	s.mu.Lock()
	s.closed = true
	for t := range s.pending {
		t.cancel(ErrClosed)
	}
	for _, t := range s.held {
		if t.state == holding {
			t.cancelAll(ErrClosed)
		}
	}
	s.unlock()

	// What is under way comes to an end first, so that counts are known.
	s.waitIdle()
	s.mu.Lock()
	s.unconfirmed = 0 // what was given up before has been logged, and is over by now or soon
	for _, t := range s.held {
		moving := t.transfer != nil && t.state == holding
		for _, cmd := range t.releases(nil) {
			s.undo(undoing{cmd: cmd, name: t.prim.Name(), until: s.now() + s.cfg.ReleaseTimeout})
		}
		t.end(ErrClosed)
		if moving { // the turn was the transfer's
			t.passTurn()
		}
	}
	s.unlock()
	s.waitIdle()

	s.stop()
	s.hub.Close()
	if s.own {
		s.client.Close()
	}
	s.background.Wait()
	s.mu.Lock()
	defer s.unlock()
	if s.stopReleasing != nil {
		s.stopReleasing() // ends its timer
	}
	if s.unconfirmed > 0 {
		return fmt.Errorf("close: %d releases were not confirmed; those locks end with their leases", s.unconfirmed)
	}
	return nil
}

// waitIdle waits until no operation is under way, at most for the release timeout.
func (s *Session) waitIdle() {
	s.mu.Lock()
	if s.active == 0 {
		s.unlock()
		return
	}
	idle := make(chan struct{})
	s.idle = idle
	s.unlock()
	timer := time.NewTimer(s.cfg.ReleaseTimeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}
