package redis

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/life"
	"relock/internal/script"
	"relock/pubsub"
)

// Config is what a Deployment needs of its session. All fields must be set, but for Prefix, Label,
// Replicas and Polls.
type Config struct {
	Session  string // its id
	Prefix   string // of the names of locks
	Label    string
	Lease    time.Duration
	Timeout  time.Duration // of a command that no caller waits for
	Replicas Asker         // to which New adds Run
	Polls    bool          // nothing is subscribed to
	Logger   *slog.Logger  // for what the session's caller is to hear itself; Env.Log is for the rest
	Life     *life.Life
	Env      life.Env // its WakeAt has Record.Tick called

	Told    func(pubsub.Message) // hears the session's own channel; must not block
	Back    func()               // called when the session hears its channel again
	Changed func(pubsub.Event)   // hears of the subscriptions; called under the hub's mutex
}

// Options are what only the package that users see knows.
type Options struct {
	Version    string             // of the module, for the session's record
	Connection *script.Connection // that the client's dial function tells; nil: none does
	OwnsClient bool               // Close closes the client
	Direct     *script.Direct     // nil: there is none
	Scout      *script.Scout      // nil: there is none
}

// A Deployment is that of one session.
type Deployment struct {
	Client   rueidis.Client
	Space    keyname.Space // its Publishing is how releases are published
	Conn     *script.Connection
	Run      *script.Runner
	Sender   Sender
	Replicas Asker
	Inbox    *inbox.Box
	Record   *Record
	Mute     bool          // this user may not publish on the channels of sessions
	Trip     time.Duration // how long Redis took to answer while Connect ran, at the least

	cfg Config
	opt Options
	hub *pubsub.Hub
}

// New returns a Deployment to which nothing has been sent yet.
func New(client rueidis.Client, cfg Config, opt Options) *Deployment {
	d := &Deployment{Client: client, cfg: cfg, opt: opt, Conn: opt.Connection,
		Space: keyname.Space{Prefix: cfg.Prefix, Cluster: client.Mode() == rueidis.ClientModeCluster},
		hub: pubsub.NewHub(client, pubsub.Logger(cfg.Env.Log),
			pubsub.RefusalRetry(inbox.RefusalRetry), pubsub.Watch(cfg.Changed)),
	}
	d.Space.Publishing = keyname.Publishes(d.Space.Cluster, false) // until Redis has offered sharded channels
	if d.Conn == nil {
		d.Conn = script.NewConnection()
	}
	if client.Mode() == rueidis.ClientModeStandalone { // clients of the others follow a failover themselves
		d.Conn.Follow(client, d.hub.Reconnect, opt.Scout, cfg.Env.Background)
	}
	d.Run = script.NewRunner(client, d.Conn, cfg.Env.Background)
	d.Sender = Sender{Run: d.Run.Run, Clock: cfg.Env.Clock, Doubts: d.Conn.Doubts.Load}
	d.Replicas = cfg.Replicas
	d.Replicas.Run = d.Run
	channel := inbox.Prefix + cfg.Session
	d.Inbox = &inbox.Box{Env: cfg.Env, Session: cfg.Session, Logger: cfg.Logger, Back: cfg.Back, Subscribe: func(ctx context.Context) error {
		_, err := d.hub.ListenFunc(ctx, channel, true, cfg.Told)
		return err
	}}
	d.Record = NewRecord(client, &d.cfg, opt.Version)
	return d
}

// Listen subscribes to a channel on which scripts publish with [keyname.Space.Publish]; with everywhere, so that each
// node of a Cluster hears it. A session that polls gets an error.
func (d *Deployment) Listen(ctx context.Context, channel string, everywhere bool) (*pubsub.Listener, error) {
	switch {
	case d.cfg.Polls:
		return nil, errPolls
	case everywhere:
		return d.hub.ListenBroadcast(ctx, channel)
	}
	return d.hub.Listen(ctx, channel)
}

// Hears reports whether the session's connection is one that hears a channel.
func (d *Deployment) Hears(channel string) bool { return d.hub.Subscribed(channel) }

var errPolls = errors.New("rlock: the session polls: Config.Polling is set")

// Fields returns the hash that stands under a key.
func (d *Deployment) Fields(ctx context.Context, key string) (map[string]string, error) {
	return d.Client.Do(ctx, d.Client.B().Hgetall().Key(key).Build()).AsStrMap()
}

// Tell sends a message to a session.
func (d *Deployment) Tell(ctx context.Context, session, message string) error {
	return inbox.Tell(ctx, d.Client, session, message)
}

// Farewell bounds how long the end of a session waits for connections to end, in order and then by
// force.
const Farewell = 250 * time.Millisecond

// Close ends the subscriptions, and the client if it is the session's.
func (d *Deployment) Close() {
	_ = d.hub.Close()
	d.Run.Close()
	if d.opt.OwnsClient {
		d.Client.Close()
	}
}

// Revoke tells the sessions that may hold a key under an owner that the lock was ended by force. An
// owner may have been named by the caller, so it is not known which sessions those are. Forcing a lock is
// rare, so it pays with a few commands here and nothing elsewhere; the script has told the session
// that made the owner already. Where Redis does not allow it, the holder learns of it at its next renewal.
func (d *Deployment) Revoke(ctx context.Context, owner, key string) {
	inbox.TellAll(ctx, d.Client, d.cfg.Env.Background, inbox.Note{Kind: inbox.Lost, Owner: owner, Key: key}.String(), func(err error) {
		d.cfg.Env.Log.Debug("relock: holders may learn of a forced unlock only at their next renewal", "error", err)
	})
}
