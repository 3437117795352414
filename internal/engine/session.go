// Package engine is the machine that all locks of this module run on: claims and sections,
// asking, renewing, releasing, the session that they belong to. docs/architecture.md is the
// guide to it; start reading at claim.go, then acquire.go and release.go.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/cleanup"
	"relock/internal/deadlock"
	"relock/internal/idgen"
	"relock/internal/schedule"
	"relock/internal/script"
	"relock/internal/tracing"
	"relock/pubsub"
)

// Session ties a process to one Redis deployment; package rlock documents it.
type Session struct {
	id     string
	cfg    Config
	trace  *tracing.Tracer // nil without Config.Trace
	start  time.Time
	owners atomic.Uint64 // the number of the owner that was made last

	deployment
	chores
	registry registry
	outage   outage
	notes    notifier
	requests requests
	spare    sync.Pool // of acquisitions, of this session: see New
	life     life
}

// The chores are what a session does by itself, by the clock or in the background.
type chores struct {
	schedule  *schedule.Schedule[*claim]
	cleanup   *cleanup.Cleanup
	fair      fairQueue
	record    record
	deadlocks *deadlock.Watch
}

// A deployment is the Redis that a session is tied to, and the ways to it.
type deployment struct {
	client  rueidis.Client
	cluster bool
	publish string // PUBLISH or SPUBLISH, what the hub subscribes for
	conn    *script.Connection
	run     *script.Runner
	hub     *pubsub.Hub

	// pollPause is the first sleep of the Backoff of a session that polls; 0: it listens.
	pollPause time.Duration
}

// life is how a session ends.
type life struct {
	closing    context.Context // ends when Close begins
	close      context.CancelFunc
	ctx        context.Context // ends when nothing may go on in the background
	stop       context.CancelFunc
	background sync.WaitGroup // every goroutine of the session
	ownsClient bool           // Close closes the client
	once       sync.Once
	err        error
	silent     atomic.Bool // it could not subscribe to its own channel
	releases   timeouts    // of Config.ReleaseTimeout
	attempts   timeouts    // of tryTimeout
	draining   atomic.Bool // Shutdown has begun: only callers in open sections are served
}

// Options are what Dial knows and NewSession does not.
type Options struct {
	Connection *script.Connection // that the client's dial function tells; nil: none does
	OwnsClient bool
	Direct     *script.Direct // nil: there is none
}

// refusalRetry is how often a refused subscription is tried again: seldom enough that an idle
// waiter stays below one command a second.
const refusalRetry = 5 * time.Second

// New makes a session. It blocks until Redis has answered a PING and the session's own channel
// is subscribed to, or ctx ends.
func New(ctx context.Context, client rueidis.Client, cfg Config, opt Options) (*Session, error) {
	switch {
	case ctx == nil:
		return nil, fmt.Errorf("new session: %w", errNilContext)
	case client == nil:
		return nil, fmt.Errorf("new session: %w: client is nil; it must be a rueidis.Client", ErrConfig)
	}
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	if err := ping(ctx, client); err != nil {
		return nil, fmt.Errorf("new session: ping: %w", unavailable(err))
	}
	s := newSession(client, cfg, opt)
	if err := s.connect(ctx, opt); err != nil {
		s.life.close()
		s.life.stop()
		s.hub.Close()
		return nil, fmt.Errorf("new session: %w", err)
	}
	sessionIDs.Store(s.id, s)
	s.life.background.Go(func() { s.schedule.Run(s.life.ctx, s.now, s.watch) })
	return s, nil
}

// connect has the session listen, and proves that it can work.
func (s *Session) connect(ctx context.Context, opt Options) error {
	if err := s.listenToOwnChannel(ctx); err != nil {
		return err
	}
	var tried <-chan struct{}
	if opt.Direct != nil && !s.life.silent.Load() {
		tried = s.run.UseDirect(opt.Direct, s.sameServer)
	}
	s.conn.Connected()
	if err := s.begin(ctx); err != nil {
		s.dropRecord()
		s.run.Close()
		return err
	}
	s.awaitDirect(ctx, tried)
	return nil
}

// newSession makes a session that has sent nothing yet.
func newSession(client rueidis.Client, cfg Config, opt Options) *Session {
	s := &Session{id: cfg.ID, cfg: cfg, start: time.Now(), requests: requests{client: idgen.Request()}}
	s.trace = tracing.New(cfg.Trace, s.now)
	s.deployment = deployment{
		client: client, cluster: client.Mode() == rueidis.ClientModeCluster, conn: opt.Connection,
		hub: pubsub.NewHub(client, pubsub.Logger(slog.New(noteHandler{s, cfg.Logger.Handler()})),
			pubsub.RefusalRetry(refusalRetry), pubsub.Watch(s.subscriptionChanged)),
	}
	if s.conn == nil {
		s.conn = script.NewConnection()
	}
	s.run = script.NewRunner(client, s.conn, &s.life.background)
	// A channel must not leave the bubble in which a test with a made-up clock has made it, so
	// acquisitions for reuse are not shared between sessions.
	s.spare.New = func() any { return &acquisition{waiter: waiter{wake: make(chan struct{}, 1)}} }
	s.registry.locks = map[string]map[string]*lock{}
	s.schedule = schedule.New[*claim]()
	s.fair.entries, s.fair.lines, s.fair.due = map[string]*claim{}, map[*lock]time.Duration{}, never
	if s.id == "" {
		s.id = idgen.Session()
	} else {
		s.owners.Store(idgen.RandomBase()) // an earlier process's holds may still stand
	}
	s.life.ownsClient = opt.OwnsClient
	s.life.closing, s.life.close = context.WithCancel(context.Background())
	s.life.ctx, s.life.stop = context.WithCancel(context.Background())
	s.cleanup = cleanup.New(cleanup.Config{Context: s.life.ctx, Background: &s.life.background,
		Timeout: cfg.ReleaseTimeout, Clock: s.now, Send: s.run.Multi, Pause: pause})
	s.deadlocks = deadlock.NewWatch(deadlock.Config{Session: s.id, Label: cfg.Label, Context: s.life.closing,
		Background: &s.life.background, Clock: s.now, WakeAt: s.schedule.WakeAt})
	s.record.ttl = max(recordTTL, 3*cfg.Lease)
	s.life.releases.each, s.life.releases.parent = cfg.ReleaseTimeout, context.Background()
	s.life.attempts.each, s.life.attempts.parent = s.tryTimeout(), s.life.closing
	return s
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

// listenToOwnChannel finds out how releases are published here and subscribes to the session's
// own channel. Where subscribing is refused the session works without: a forced unlock is then
// noticed at the next renewal.
func (s *Session) listenToOwnChannel(ctx context.Context) error {
	s.publish = "PUBLISH"
	sharded, err := s.hub.Sharded(ctx)
	if err == nil && sharded {
		s.publish = "SPUBLISH"
	}
	if s.cfg.Polling != nil {
		s.pollPause, _ = s.cfg.Polling.next(1)
		s.life.silent.Store(true)
		return ctx.Err()
	}
	if err == nil {
		_, err = s.hub.ListenFunc(ctx, SessionChannel+s.id, true, s.told)
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	if err != nil {
		s.cfg.Logger.Warn("relock: cannot subscribe; waiters will poll", "error", err)
		s.life.silent.Store(true)
		s.life.background.Go(s.keepAskingToListen)
	}
	return nil
}

// keepAskingToListen subscribes to the session's channel when that is allowed again. The hub
// asks the server every refusalRetry, not at each of these calls.
func (s *Session) keepAskingToListen() {
	for {
		if _, err := s.hub.ListenFunc(s.life.ctx, SessionChannel+s.id, true, s.told); err == nil {
			s.life.silent.Store(false)
			s.recheck()
			return
		}
		timer := time.NewTimer(jitter(refusalRetry / 5))
		select {
		case <-timer.C:
		case <-s.life.ctx.Done():
			timer.Stop()
			return
		}
	}
}

// anyoneHere is what a session tells itself to find out whether it would hear it.
const anyoneHere = ""

// directPatience is how long New waits for the direct connection, which it can do without.
const directPatience = 250 * time.Millisecond

// awaitDirect waits a little until the direct connection was tried: the first Lock is to find it.
func (s *Session) awaitDirect(ctx context.Context, tried <-chan struct{}) {
	if tried == nil {
		return
	}
	timer := time.NewTimer(directPatience)
	defer timer.Stop()
	select {
	case <-tried:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sameServer reports whether a client of one connection leads to the server where this session
// listens, and its own client too: only there does the session's own channel have a listener.
func (s *Session) sameServer(ctx context.Context, direct rueidis.Client) bool {
	for _, c := range []rueidis.Client{direct, s.client} {
		n, err := c.Do(ctx, c.B().Publish().Channel(SessionChannel+s.id).Message(anyoneHere).Build()).AsInt64()
		if err != nil || n == 0 {
			return false
		}
	}
	return true
}

// made reports whether New has made the session: the zero Session is of no use.
func (s *Session) made() bool { return s.client != nil }

// ID returns the session's id: a random UUID unless Config.ID was set.
func (s *Session) ID() string { return s.id }

// Config returns the configuration in use: the one given, with the defaults filled in.
func (s *Session) Config() *Config { return &s.cfg }

// CannotListen reports whether the session is not allowed to subscribe to its own channel, and
// so cannot be told anything.
func (s *Session) CannotListen() bool { return s.life.silent.Load() }

// Cluster reports whether the deployment is a Redis Cluster.
func (s *Session) Cluster() bool { return s.cluster }

// now is the time since the session began, by the monotonic clock.
func (s *Session) now() time.Duration { return time.Since(s.start) }
