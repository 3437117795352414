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
	"relock/internal/config"
	"relock/internal/deadline"
	"relock/internal/deadlock"
	"relock/internal/deployment"
	"relock/internal/idgen"
	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/life"
	"relock/internal/lockerr"
	"relock/internal/notes"
	"relock/internal/outage"
	"relock/internal/owner"
	"relock/internal/registry"
	"relock/internal/replicas"
	"relock/internal/requestid"
	"relock/internal/schedule"
	"relock/internal/tracing"
	"relock/internal/waiting"
	"relock/pubsub"
)

// Session ties a process to one Redis deployment; package rlock documents it.
type Session struct {
	id        string
	cfg       config.Config
	now       func() time.Duration // since the session began, by the monotonic clock
	owners    atomic.Uint64        // the number of the owner that was made last
	unreserve func()               // WithOwner takes names of the shape of this session's own owners from then on

	redis *deployment.Deployment
	chores
	locks *registry.Registry[lock] // those that the session has to do with, and idle ones: see lookup.go
	reports
	requests requestid.Pool
	calls    calls.Session
	// spare has acquisitions for reuse. It is the session's own, since a channel must not leave the
	// bubble in which a test with a made-up clock has made it.
	spare sync.Pool
	departures
	standing  sync.Map     // until when claims that are over may stand in Redis, by the number of their owner
	deserted  atomic.Int64 // until when a channel may be subscribed to although nobody listens: see lock.hears
	slowUntil atomic.Int64 // until when it counts as a slow taker, see waiting.SlowFor
	plainHead string       // what most entries in lines begin with
	oneHead   string       // and those for one permit
	liners    [waiting.Sorts]atomic.Pointer[kind.Liner]
	life      *life.Life
	limits
}

// The chores are what a session does by itself, by the clock or in the background.
type chores struct {
	schedule  *schedule.Schedule[*claim]
	cleanup   *cleanup.Cleanup
	looks     waiting.Due[*lock] // of the entries of fair locks; its mutex comes after those of the locks
	deadlocks *deadlock.Watch
}

// The reports are how a session speaks to the code of the caller.
type reports struct {
	trace     *tracing.Tracer // nil without Config.Trace
	notes     notes.Notifier
	log       *slog.Logger // Config.Logger by way of notes: it may be called under any mutex
	outage    *outage.Watch
	unrenewed *outage.Renewals[*claim]
}

// The limits bound commands in time.
type limits struct {
	releaseLimit deadline.Shared // of Config.ReleaseTimeout
	attemptLimit deadline.Shared // of Config.TryTimeout
	pollPause    time.Duration   // Config.PollPause
}

// New makes a session. It blocks as [deployment.Deployment.Connect] does.
func New(ctx context.Context, client rueidis.Client, cfg config.Config, opt deployment.Options) (*Session, error) {
	s := newSession(client, cfg, opt)
	if err := s.redis.Connect(ctx); err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	s.pollPause = cfg.PollPause()
	s.unreserve = owner.Reserve(s.id)
	s.life.Background.Go(func() { s.schedule.Run(s.life.Context, s.now, s.watch) })
	return s, nil
}

// newSession makes a session that has sent nothing yet.
func newSession(client rueidis.Client, cfg config.Config, opt deployment.Options) *Session {
	s := &Session{id: cfg.ID, cfg: cfg, life: life.New(), requests: requestid.Pool{Client: idgen.Request()}}
	begun := time.Now()
	s.now = func() time.Duration { return time.Since(begun) }
	if s.id == "" {
		s.id = idgen.Session()
	} else {
		s.owners.Store(idgen.RandomBase()) // an earlier process's holds may still stand
	}
	w := s.want()
	s.plainHead = w.Head()
	w.Permits = 1
	s.oneHead = w.Head()
	s.log = slog.New(s.notes.Handler(cfg.Logger.Handler()))
	s.trace = tracing.New(tracing.Guard(cfg.Trace, s.log), s.now)
	s.outage = outage.New(s.now, s.log)
	s.unrenewed = outage.NewRenewals[*claim](s.now, s.log)
	s.locks = registry.New[lock](keptLocks)
	s.schedule = schedule.New(func(c *claim) *schedule.Slot { return &c.slot })
	heard := &inbox.Handlers{Missed: s.recheck, Grant: s.hearLine, Revoked: s.revoke, Wanted: s.askedBack, Log: s.log,
		Seek: func(m string) error { return s.deadlocks.Hear(m) }} // which is made below
	s.redis = deployment.New(client, deployment.Config{Session: s.id, Prefix: cfg.Prefix, Label: cfg.Label, Lease: cfg.Lease,
		Timeout: cfg.ReleaseTimeout, Replicas: replicas.Asker{Want: cfg.Replicas, Timeout: cfg.ReplicaTimeout, Answer: cfg.AnswerTime()},
		Polls: cfg.Polling != nil, Logger: cfg.Logger, Log: s.log, Life: s.life, Clock: s.now, WakeAt: s.schedule.WakeAt,
		Told: heard.Hear, Back: s.recheck, Changed: s.subscriptionChanged}, opt)
	s.calls = calls.Session{Life: s.life, Sender: &s.redis.Sender, Requests: &s.requests, Bound: cfg.ReleaseTimeout, Log: s.log}
	s.cleanup = cleanup.New(cleanup.Config{Context: s.life.Context, Background: &s.life.Background,
		Timeout: cfg.ReleaseTimeout, Clock: s.now, Send: s.redis.Run.Multi, Pause: backoff.Pause, Log: s.log})
	s.deadlocks = deadlock.NewWatch(deadlock.Config{Session: s.id, Label: cfg.Label, Context: s.life.Closing,
		Background: &s.life.Background, Clock: s.now, WakeAt: s.schedule.WakeAt,
		Deaf: s.redis.Inbox.Deaf, Fields: s.redis.Fields, Tell: s.redis.Tell, Failed: func(err error) {
			s.log.Debug("relock: a search for a deadlock has ended early", "error", err)
		}})
	s.releaseLimit.Set(context.Background(), cfg.ReleaseTimeout)
	s.attemptLimit.Set(s.life.Closing, cfg.TryTimeout())
	return s
}

// usable returns why nothing can be done with s: New has not made it.
func (s *Session) usable() error {
	switch {
	case s == nil:
		return fmt.Errorf("%w: the session is nil; make one with Dial or NewSession", ErrArgument)
	case !s.made():
		return fmt.Errorf("%w: the session is a zero value; make one with Dial or NewSession", ErrArgument)
	}
	return nil
}

// Names checks a lock's name and returns what it is called in this session's Redis.
// Errors: [lockerr.ErrName] if it is empty, [ErrArgument] if s is nil or a zero value.
func (s *Session) Names(name string) (keyname.Names, error) {
	if err := s.usable(); err != nil {
		return (*keyname.Space)(nil).Names(name), err
	}
	if name == "" {
		return s.redis.Space.Names(name), fmt.Errorf("%w: it is empty; a name has at least one byte", lockerr.ErrName)
	}
	return s.redis.Space.Names(name), nil
}

// NamesOf returns the names of a lock of this session by its key.
func (s *Session) NamesOf(key string) keyname.Names { return s.redis.Space.NamesOf(key) }

// made reports whether New has made the session: the zero Session is of no use.
func (s *Session) made() bool { return s.redis != nil }

// notify has fn run soon, outside of every mutex.
func (s *Session) notify(fn func()) { s.notes.Add(fn) }

// ID returns the session's id: a random UUID unless Config.ID was set.
func (s *Session) ID() string { return s.id }

// Config returns the configuration in use: the one given, with the defaults filled in.
func (s *Session) Config() *config.Config { return &s.cfg }

// CannotListen reports whether the session is not allowed to subscribe to its own channel, and
// so cannot be told anything.
func (s *Session) CannotListen() bool { return s.redis.Inbox.Deaf() }

// Listen is [deployment.Deployment.Listen].
func (s *Session) Listen(ctx context.Context, channel string) (*pubsub.Listener, error) {
	return s.redis.Listen(ctx, channel)
}

// Cluster reports whether the deployment is a Redis Cluster.
func (s *Session) Cluster() bool { return s.redis.Space.Cluster }

// never is a point of time that does not come.
const never = schedule.Never
