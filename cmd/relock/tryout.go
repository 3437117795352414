package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"relock/fairlock"
	"relock/internal/keyname"
	"relock/internal/script"
	"relock/pubsub"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

const (
	tryLease   = 10 * time.Second // what a check leaves behind ends with it
	tryTimeout = 5 * time.Second  // for one kind of lock, or one message
)

// aclRemedy is what helps against most refusals.
const aclRemedy = "give the user the permissions in docs/cli.md, or a --name that its ACL allows"

// tryOut takes a lock of each kind under a name of its own, as an application would: this
// finds what no setting shows, above all a missing permission.
func tryOut(ctx context.Context, client rueidis.Client, prefix string) []Finding {
	base := prefix + ":" + strings.ToLower(rand.Text())
	commands, looks := checkCommands(ctx, client, base), checkLooks(ctx, client, base)
	connecting, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	session, err := rlock.NewSession(connecting, client, rlock.Config{Lease: tryLease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return []Finding{commands, looks, noSession(connecting, client, err)}
	}
	defer session.Close()
	if err := client.Do(connecting, client.B().Exists().Key(base).Build()).Error(); script.DeniedKeys(err) {
		return []Finding{commands, looks, fail("name", fmt.Sprintf("no lock was tried: the ACL does not let this user at names that begin with %q", prefix),
			"run relock doctor --name with what the names of locks begin with here")}
	}
	t := trial{client, session, base, keyname.Style{Cluster: client.Mode() == rueidis.ClientModeCluster}}
	checks := []func() Finding{
		func() Finding {
			return t.lock(ctx, "mutex", func(ctx context.Context, name string) error {
				return nested(ctx, rlock.New(session, name, rlock.Fenced()).Do)
			})
		},
		func() Finding {
			return t.lock(ctx, "fairlock", func(ctx context.Context, name string) error {
				return nested(ctx, fairlock.New(session, name, rlock.Fenced()).Do)
			})
		},
		func() Finding {
			return t.lock(ctx, "rwlock", func(ctx context.Context, name string) error {
				m := rwlock.New(session, name)
				if err := nested(ctx, m.RDo); err != nil {
					return err
				}
				return nested(ctx, m.Do)
			})
		},
		func() Finding {
			return t.lock(ctx, "semaphore", func(ctx context.Context, name string) error {
				return semaphore.New(session, name, 1).Do(ctx, 1, nothing)
			})
		},
		func() Finding { return t.messages(ctx) },
		func() Finding { return t.counts(ctx) },
		func() Finding { return t.label(ctx) },
	}
	// At the same time, since each waits for as long as it may if Redis does not serve.
	findings := make([]Finding, len(checks))
	var wg sync.WaitGroup
	for i, check := range checks {
		wg.Go(func() { findings[i] = check() })
	}
	wg.Wait()
	return append([]Finding{commands, looks}, findings...)
}

// noSession says why there is no session. A client that may not ask for the slots of a Cluster takes
// its node for a single server, and no error tells that.
func noSession(ctx context.Context, client rueidis.Client, err error) Finding {
	const check = "session"
	if client.Mode() != rueidis.ClientModeCluster && strings.Contains(err.Error(), "CROSSSLOT") {
		var missing []string // which of them a client asks for depends on the version of the server
		var why error
		for _, asked := range []struct {
			name string
			cmd  rueidis.Completed
		}{
			{"+cluster|shards", client.B().ClusterShards().Build()},
			{"+cluster|slots", client.B().ClusterSlots().Build()},
		} {
			if refused := client.Do(ctx, asked.cmd).Error(); script.Denied(refused) {
				missing, why = append(missing, asked.name), refused
			}
		}
		if why != nil {
			return fail(check, "this is a node of a Cluster, and the client takes it for a single server: "+why.Error(),
				"allow "+strings.Join(missing, " "))
		}
	}
	return fail(check, "a session cannot be made: "+err.Error(), aclRemedy)
}

func nothing(context.Context) error { return nil }

// nested locks twice, since a nested hold needs more keys and commands than the outermost.
func nested(ctx context.Context, do func(context.Context, func(context.Context) error, ...rlock.LockOption) error) error {
	return do(ctx, func(ctx context.Context) error { return do(ctx, nothing) })
}

// A trial tries locks out.
type trial struct {
	client  rueidis.Client
	session *rlock.Session
	base    string
	style   keyname.Style
}

// lock runs fn with a name of its own, and removes what the lock leaves behind.
func (t trial) lock(ctx context.Context, kind string, fn func(ctx context.Context, name string) error) Finding {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	name := t.base + ":" + kind
	began := time.Now()
	err := fn(ctx, name)
	took := time.Since(began).Round(10 * time.Microsecond)
	// One DEL for each: these are in one slot, but a key may be refused by itself.
	for _, key := range []string{name, t.style.Prefix("redisson_lock_token", name), t.style.Suffix(name, "timeout")} {
		_ = t.client.Do(ctx, t.client.B().Del().Key(key).Build()).Error()
	}
	if err == nil {
		return ok(kind, "locked and unlocked in %v", took)
	}
	remedy := "look at the error, and at the server's log"
	switch text := err.Error(); {
	case script.Denied(err):
		remedy = aclRemedy
	case strings.Contains(text, "OOM"):
		remedy = "memory is full: raise maxmemory, or keep locks in a Redis of their own"
	case strings.Contains(text, "READONLY"):
		remedy = "give --redis the master, or the Sentinels with ?master_set="
	case strings.Contains(text, "MISCONF"):
		remedy = "Redis cannot write its snapshot: look at the server's log, and at its disk"
	}
	return fail(kind, err.Error(), remedy)
}

// messages measures how long the message of a release takes, on the connection and with the
// kind of channel that sessions use here.
func (t trial) messages(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	const check = "messages"
	remedy := "allow SUBSCRIBE and PUBLISH (in a Cluster, SSUBSCRIBE and SPUBLISH) on redisson_* and relock_session:*; until then waiters poll every 2 s"
	hub := pubsub.NewHub(t.client)
	defer hub.Close()
	channel := t.style.Prefix("redisson_lock__channel", t.base)
	sharded, err := hub.Sharded(ctx)
	if err != nil {
		return warn(check, "it cannot be told which channels are in use: "+err.Error(), remedy)
	}
	listener, err := hub.Listen(ctx, channel)
	if err != nil {
		return warn(check, "subscribing is refused: "+err.Error(), remedy)
	}
	defer listener.Close()
	publish, kind := t.client.B().Publish().Channel(channel).Message("0").Build(), "plain"
	if sharded {
		publish, kind = t.client.B().Spublish().Channel(channel).Message("0").Build(), "sharded"
	}
	began := time.Now()
	if err := t.client.Do(ctx, publish).Error(); err != nil {
		return warn(check, "publishing is refused: "+err.Error(), remedy)
	}
	select {
	case <-listener.C():
		return ok(check, "one took %v, on %s channels", time.Since(began).Round(10*time.Microsecond), kind)
	case <-ctx.Done():
		return warn(check, fmt.Sprintf("one did not arrive within %v, on %s channels", tryTimeout, kind),
			"look at what is between: proxies often drop messages; until then waiters poll every 2 s")
	}
}

// counts looks whether the release of a plain lock may ask who listens, before it gives the lock to a session.
func (t trial) counts(ctx context.Context) Finding {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	const check = "listeners"
	hub := pubsub.NewHub(t.client)
	defer hub.Close()
	sharded, err := hub.Sharded(ctx)
	if err != nil {
		return warn(check, "it cannot be told which channels are in use: "+err.Error(), aclRemedy)
	}
	channel, how := t.style.Prefix("redisson_lock__channel", t.base), "numsub"
	ask := t.client.B().PubsubNumsub().Channel(channel).Build()
	if sharded {
		ask, how = t.client.B().PubsubShardnumsub().Channel(channel).Build(), "shardnumsub"
	}
	if err := t.client.Do(ctx, ask).Error(); err != nil {
		return warn(check, "a release cannot ask who listens: a lock may be given to a session that has gone, and stands still for up to 1.25 s; "+
			"Redisson's clients get no turns while sessions wait: "+err.Error(), "allow +pubsub|"+how)
	}
	return ok(check, "a release may ask who listens")
}

// label looks whether a session can say who it is.
func (t trial) label(ctx context.Context) Finding {
	owner := Owner{ID: t.session.ID() + ":1"}
	var known labels
	known.load(ctx, t.client, []Owner{owner})
	if known.of(owner) == nil {
		return warn("label", "sessions cannot say which process they are: show and top give ids only",
			"allow TIME, and SET, GET and DEL on keys that begin with relock_session:")
	}
	return ok("label", "sessions say which process they are")
}
