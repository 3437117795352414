// Package engine is the machine that all locks of this module run on: claims and sections,
// asking, renewing, releasing, the session that they belong to. docs/architecture.md is the
// guide to it, and says where to start reading.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/backoff"
	"relock/internal/calls"
	"relock/internal/cleanup"
	"relock/internal/deadline"
	"relock/internal/deadlock"
	"relock/internal/idgen"
	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/life"
	"relock/internal/lockerr"
	"relock/internal/notes"
	"relock/internal/outage"
	"relock/internal/probe"
	"relock/internal/record"
	"relock/internal/replicas"
	"relock/internal/requestid"
	"relock/internal/resend"
	"relock/internal/schedule"
	"relock/internal/script"
	"relock/internal/tracing"
	"relock/locktrace"
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
	outage   *outage.Watch
	notes    notes.Notifier
	requests requestid.Pool
	desk     calls.Desk
	spare    sync.Pool // of acquisitions, of this session: see New
	life     *life.Life
	limits
}

// The chores are what a session does by itself, by the clock or in the background.
type chores struct {
	schedule  *schedule.Schedule[*claim]
	cleanup   *cleanup.Cleanup
	fair      fairQueue
	record    *record.Record
	deadlocks *deadlock.Watch
}

// A deployment is the Redis that a session is tied to, and the ways to it.
type deployment struct {
	client   rueidis.Client
	space    keyname.Space // its Publish is what the hub subscribes for
	conn     *script.Connection
	run      *script.Runner
	sender   resend.Sender
	replicas replicas.Asker
	hub      *pubsub.Hub
	inbox    *inbox.Box

	ownsClient bool // Close closes the client

	// pollPause is the first sleep of the Backoff of a session that polls; 0: it listens.
	pollPause time.Duration
}

// The limits bound commands in time.
type limits struct {
	releases deadline.Shared // of Config.ReleaseTimeout
	attempts deadline.Shared // of tryTimeout
}

// Options are what Dial knows and NewSession does not.
type Options struct {
	Connection *script.Connection // that the client's dial function tells; nil: none does
	OwnsClient bool
	Direct     *script.Direct // nil: there is none
}

// Config is an rlock.Config that has been checked and has its defaults: the conversion of one to the
// other compiles only as long as they have the same fields. Package rlock documents them.
type Config struct {
	ID               string
	Prefix           string
	Lease            time.Duration
	ReleaseTimeout   time.Duration
	PollFloor        time.Duration
	QueueLease       time.Duration
	RedissonWatchdog time.Duration
	Replicas         int
	ReplicaTimeout   time.Duration
	HandOverLimit    int
	Polling          backoff.Backoff
	Label            string
	Logger           *slog.Logger
	Trace            *locktrace.Trace
}

// New makes a session. It blocks until Redis has answered a PING and the session's own channel
// is subscribed to, or ctx ends.
func New(ctx context.Context, client rueidis.Client, cfg Config, opt Options) (*Session, error) {
	if err := probe.Ping(ctx, client); err != nil {
		return nil, fmt.Errorf("new session: ping: %w", lockerr.Unavailable(err))
	}
	s := newSession(client, cfg, opt)
	if err := s.connect(ctx, opt); err != nil {
		s.life.Stop()
		s.hub.Close()
		return nil, fmt.Errorf("new session: %w", err)
	}
	sessionIDs.Store(s.id, s)
	s.life.Background.Go(func() { s.schedule.Run(s.life.Context, s.now, s.watch) })
	return s, nil
}

// newSession makes a session that has sent nothing yet.
func newSession(client rueidis.Client, cfg Config, opt Options) *Session {
	s := &Session{id: cfg.ID, cfg: cfg, start: time.Now(), life: life.New(), requests: requestid.Pool{Client: idgen.Request()}}
	s.trace = tracing.New(cfg.Trace, s.now)
	s.outage = outage.New(s.now, s.notify, cfg.Logger)
	s.deployment = deployment{
		client: client, space: keyname.Space{Prefix: cfg.Prefix, Cluster: client.Mode() == rueidis.ClientModeCluster, Publish: "PUBLISH"},
		conn: opt.Connection, ownsClient: opt.OwnsClient,
		hub: pubsub.NewHub(client, pubsub.Logger(slog.New(s.notes.Handler(cfg.Logger.Handler()))),
			pubsub.RefusalRetry(inbox.RefusalRetry), pubsub.Watch(s.subscriptionChanged)),
	}
	if s.conn == nil {
		s.conn = script.NewConnection()
	}
	s.run = script.NewRunner(client, s.conn, &s.life.Background)
	s.sender = resend.Sender{Run: s.run.Run, Clock: s.now, Doubts: s.conn.Doubts}
	s.desk = calls.Desk{Life: s.life, Sender: &s.sender, Requests: &s.requests, Bound: cfg.ReleaseTimeout}
	s.replicas = replicas.Asker{Run: s.run, Want: cfg.Replicas, Timeout: cfg.ReplicaTimeout, Answer: s.answerTime()}
	// A channel must not leave the bubble in which a test with a made-up clock has made it, so
	// acquisitions for reuse are not shared between sessions.
	s.spare.New = func() any { return &acquisition{waiter: waiter{wake: make(chan struct{}, 1)}} }
	s.registry.locks = map[string]map[string]*lock{}
	s.schedule = schedule.New[*claim]()
	if s.id == "" {
		s.id = idgen.Session()
	} else {
		s.owners.Store(idgen.RandomBase()) // an earlier process's holds may still stand
	}
	s.inbox = &inbox.Box{Session: s.id, Logger: cfg.Logger, Context: s.life.Context, Background: &s.life.Background,
		Back: s.recheck, Subscribe: func(ctx context.Context) error {
			_, err := s.hub.ListenFunc(ctx, SessionChannel+s.id, true, s.told)
			return err
		}}
	s.cleanup = cleanup.New(cleanup.Config{Context: s.life.Context, Background: &s.life.Background,
		Timeout: cfg.ReleaseTimeout, Clock: s.now, Send: s.run.Multi, Pause: backoff.Pause})
	s.deadlocks = deadlock.NewWatch(deadlock.Config{Session: s.id, Label: cfg.Label, Context: s.life.Closing,
		Background: &s.life.Background, Clock: s.now, WakeAt: s.schedule.WakeAt})
	s.record = record.New(record.Config{Key: SessionChannel + s.id, Label: cfg.Label, Lease: cfg.Lease, Timeout: cfg.ReleaseTimeout,
		Client: client, Context: s.life.Context, Background: &s.life.Background, Clock: s.now, WakeAt: s.schedule.WakeAt,
		Failed: func(what string, err error) {
			s.notify(func() {
				cfg.Logger.Debug("relock: the session's record was not "+what, "key", SessionChannel+s.id, "error", err)
			})
		}})
	s.releases.Set(context.Background(), cfg.ReleaseTimeout)
	s.attempts.Set(s.life.Closing, s.tryTimeout())
	return s
}

var errZeroSession = fmt.Errorf("%w: the session is a zero value; make one with Dial or NewSession", ErrArgument)

// Names checks a lock's name and returns what it is called in this session's Redis.
// Errors: [lockerr.ErrName] if it is empty, [ErrArgument] if s is nil or a zero value.
func (s *Session) Names(name string) (keyname.Names, error) {
	var none *keyname.Space
	switch {
	case s == nil:
		return none.Names(name), fmt.Errorf("%w: the session is nil; make one with Dial or NewSession", ErrArgument)
	case !s.made():
		return none.Names(name), errZeroSession
	case name == "":
		return s.space.Names(name), fmt.Errorf("%w: it is empty; a name has at least one byte", lockerr.ErrName)
	}
	return s.space.Names(name), nil
}

// NamesOf returns the names of a lock of this session by its key.
func (s *Session) NamesOf(key string) keyname.Names { return s.space.NamesOf(key) }

// made reports whether New has made the session: the zero Session is of no use.
func (s *Session) made() bool { return s.client != nil }

// notify has fn run soon, outside of every mutex.
func (s *Session) notify(fn func()) { s.notes.Add(fn) }

// ID returns the session's id: a random UUID unless Config.ID was set.
func (s *Session) ID() string { return s.id }

// Config returns the configuration in use: the one given, with the defaults filled in.
func (s *Session) Config() *Config { return &s.cfg }

// CannotListen reports whether the session is not allowed to subscribe to its own channel, and
// so cannot be told anything.
func (s *Session) CannotListen() bool { return s.inbox.Deaf() }

// Cluster reports whether the deployment is a Redis Cluster.
func (s *Session) Cluster() bool { return s.space.Cluster }

// never is a point of time that does not come.
const never = time.Duration(1<<63 - 1)

// now is the time since the session began, by the monotonic clock.
func (s *Session) now() time.Duration { return time.Since(s.start) }
