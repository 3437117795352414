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

	"relock/internal/api"
	"relock/internal/calls"
	"relock/internal/clock"
	"relock/internal/deadlock"
	"relock/internal/holds"
	"relock/internal/idgen"
	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/life"
	"relock/internal/redis"
	"relock/internal/report"
	"relock/pubsub"
)

// Session ties a process to one Redis deployment; package rlock documents it.
type Session struct {
	identity
	cfg Config
	now func() time.Duration // since the session began, by the monotonic clock

	redis *redis.Deployment
	chores
	locks *life.Registry[lock] // those that the session has to do with, and idle ones: see lookup.go
	reports
	requests idgen.Requests
	calls    calls.Session
	// spare has acquisitions for reuse. It is the session's own, since a channel must not leave the
	// bubble in which a test with a made-up clock has made it.
	spare sync.Pool
	async asyncReleases
	lines
	standing standing
	life     *life.Life
	limits
}

// The identity of a session is what its owners are made of.
type identity struct {
	id        string
	owners    atomic.Uint64 // the number of the owner that was made last
	unreserve func()        // WithOwner takes names of the shape of this session's own owners from then on
}

// The chores are what a session does by itself, by the clock or in the background.
type chores struct {
	schedule  *clock.Schedule[*claim]
	cleanup   *redis.Cleanup
	deadlocks *deadlock.Watch
}

// The reports are how a session speaks to the code of the caller.
type reports struct {
	trace     *report.Tracer  // nil without Config.Trace
	notes     report.Notifier // for the hooks
	log       *slog.Logger    // Config.Logger by way of another Notifier: it may be called under any mutex
	outage    *report.Watch
	unrenewed *report.Renewals[*claim]
}

// The limits bound commands in time.
type limits struct {
	releaseLimit clock.Deadline // of Config.ReleaseTimeout
	attemptLimit clock.Deadline // of Config.TryTimeout
	pollPause    time.Duration  // the first sleep of the Backoff of a session that polls; 0: it listens
}

// New makes a session. It blocks as [redis.Deployment.Connect] does.
func New(ctx context.Context, client rueidis.Client, cfg Config, opt redis.Options) (*Session, error) {
	s := newSession(client, cfg, opt)
	if err := s.redis.Connect(ctx); err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	if s.redis.Inbox.Deaf.Load() {
		s.unheard.Store(1) // since it began
	}
	s.makeHeads()
	if p := s.cfg.Polling; p != nil {
		s.pollPause, _ = p.Next(1)
	}
	s.unreserve = holds.ReserveOwners(s.id)
	s.life.Background.Go(func() { s.schedule.Run(s.life.Context, s.now, s.watch) })
	return s, nil
}

// newSession makes a session that has sent nothing yet.
func newSession(client rueidis.Client, cfg Config, opt redis.Options) *Session {
	s := &Session{identity: identity{id: cfg.ID}, cfg: cfg, life: life.New(), requests: idgen.Requests{Client: idgen.Request()}}
	begun := time.Now()
	s.now = func() time.Duration { return time.Since(begun) }
	if s.id == "" {
		s.id = idgen.Session()
	} else {
		s.owners.Store(idgen.RandomBase()) // an earlier process's holds may still stand
	}
	s.notes = report.NewNotifier()
	s.log = slog.New(report.NewNotifier().Handler(cfg.Logger.Handler()))
	s.cfg.Polling = report.GuardBackoff(cfg.Polling, s.log)
	s.trace = report.NewTracer(report.Guard(cfg.Trace, s.log), s.now)
	s.outage = report.NewWatch(s.now, s.log)
	s.unrenewed = report.NewRenewals[*claim](s.now, s.log)
	s.locks = life.NewRegistry[lock](keptLocks)
	s.schedule = clock.NewSchedule(func(c *claim) *clock.Slot { return &c.slot })
	env := life.Env{Context: s.life.Context, Background: &s.life.Background, Clock: s.now, WakeAt: s.schedule.WakeAt, Log: s.log}
	heard := &inbox.Handlers{Missed: s.recheck, Line: s.hearLine, Revoked: s.revoke, Wanted: s.hearWanted, Log: s.log,
		Deadlock: func(m string) error { return s.deadlocks.Hear(m) }} // which is made below
	s.redis = redis.New(client, redis.Config{Session: s.id, Prefix: cfg.Prefix, Label: cfg.Label, Lease: cfg.Lease,
		Timeout: cfg.ReleaseTimeout, Replicas: redis.Asker{Want: cfg.Replicas, Timeout: cfg.ReplicaTimeout, Answer: cfg.AnswerTime()},
		Polls: cfg.Polling != nil, Logger: cfg.Logger, Life: s.life, Env: env,
		Told: heard.Hear, Back: s.recheck, Changed: s.subscriptionChanged}, opt)
	s.calls = calls.Session{Life: s.life, Sender: &s.redis.Sender, Requests: &s.requests, Bound: cfg.ReleaseTimeout, Log: s.log}
	s.cleanup = redis.NewCleanup(env, cfg.ReleaseTimeout, s.redis.Run.Behind)
	env.Context = s.life.Closing
	s.deadlocks = deadlock.NewWatch(deadlock.Config{Env: env, Session: s.id, Label: cfg.Label,
		Deaf: s.deaf, Fields: s.redis.Fields, Tell: s.redis.Tell})
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
// Errors: [api.ErrName] if it is empty, [ErrArgument] if s is nil or a zero value.
func (s *Session) Names(name string) (keyname.Names, error) {
	if err := s.usable(); err != nil {
		return (*keyname.Space)(nil).Names(name), err
	}
	if name == "" {
		return s.redis.Space.Names(name), fmt.Errorf("%w: it is empty; a name has at least one byte", api.ErrName)
	}
	return s.redis.Space.Names(name), nil
}

// NamesOf returns the names of a lock of this session by its key.
func (s *Session) NamesOf(key string) keyname.Names { return s.redis.Space.NamesOf(key) }

// made reports whether New has made the session: the zero Session is of no use.
func (s *Session) made() bool { return s.redis != nil }

// ID returns the session's id: a random UUID unless Config.ID was set.
func (s *Session) ID() string { return s.id }

// Config returns the configuration in use: the one given, with the defaults filled in.
func (s *Session) Config() *Config { return &s.cfg }

// Listen is [redis.Deployment.Listen], not everywhere.
func (s *Session) Listen(ctx context.Context, channel string) (*pubsub.Listener, error) {
	return s.redis.Listen(ctx, channel, false)
}

// Cluster reports whether the deployment is a Redis Cluster.
func (s *Session) Cluster() bool { return s.redis.Space.Cluster }

// never is a point of time that does not come.
const never = clock.Never
