package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
	"relock/internal/script"
	"relock/pubsub"
)

// samples are the commands that the scripts of locks run, except SADD and what publishes, each so that
// it changes nothing on a key that is not there: Redis looks at permissions before it looks at values.
var samples = [...]string{
	"EXISTS k", "TIME", "DEL k", "PEXPIRE k 1", "PERSIST k", "PTTL k", "GET k", "SET k v NX XX", "INCRBY k x", "DECRBY k x",
	"HGET k f", "HMGET k f", "HSET k f v f", "HEXISTS k f", "HLEN k", "HINCRBY k f x", "HDEL k f", "HKEYS k", "HGETALL k",
	"SREM k m", "SISMEMBER k m", "SMEMBERS k", "SCARD k",
	"ZADD k x m", "ZREM k m", "ZSCORE k m", "ZMSCORE k m", "ZCARD k", "ZCOUNT k 0 1", "ZRANGE k 0 1", "ZREVRANGE k 0 1", "ZREVRANGEBYSCORE k 1 0",
	"ZRANGEBYSCORE k 0 1", "ZREMRANGEBYSCORE k 0 1",
}

// checkCommands names the commands of scripts that the ACL does not allow: a script that is refused
// one does not always say which, and some are not needed before an operator ends a lock.
func checkCommands(ctx context.Context, client rueidis.Client, base string) Finding {
	const check = "commands"
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	style := keyname.Style{Cluster: client.Mode() == rueidis.ClientModeCluster}
	key := base + ":" + check
	r := rehearsal{client: client, key: key, channel: style.Prefix("redisson_lock__channel", key)}
	r.run(ctx, append(r.publish(ctx), samples[:]...))
	// SADD has no arguments that it always refuses, so it gets a key of another type; without SET it
	// makes a set, which must not stay.
	untried := ""
	if r.refuses("SET") && r.refuses("SREM") && r.refuses("DEL") && r.refuses("PEXPIRE") {
		r.refused = append(r.refused, "SADD")
		untried = " (SADD was not tried, since its set would stay)"
	} else {
		px := strconv.FormatInt(tryLease.Milliseconds(), 10)
		r.run(ctx, []string{"SET k v PX " + px, "SADD k m", "PEXPIRE k " + px, "SREM k m", "DEL k"})
	}
	switch {
	case r.refused != nil:
		return fail(check, "the ACL does not let this user run "+strings.Join(r.refused, ", ")+untried,
			"allow +"+strings.ToLower(strings.Join(r.refused, " +")))
	case r.failed != nil:
		return warn(check, "it is not known which are allowed: "+r.failed.Error(), "look at the error, and at the server's log")
	}
	return ok(check, "all that locks run in scripts are allowed")
}

// A rehearsal sends the commands of scripts by themselves.
type rehearsal struct {
	client  rueidis.Client
	key     string   // stands for the word k
	channel string   // stands for the word c; in the key's slot
	refused []string // by the ACL, whatever the key and the channel
	failed  error    // what else has kept Redis from an answer, first
}

func (r *rehearsal) refuses(name string) bool { return slices.Contains(r.refused, name) }

// publish returns the sample of the command that publishes here, in the way of [trial.messages],
// which says so if it cannot be told. No one listens to the channel.
func (r *rehearsal) publish(ctx context.Context) []string {
	hub := pubsub.NewHub(r.client)
	defer hub.Close()
	switch sharded, err := hub.Sharded(ctx); {
	case err != nil:
		return nil
	case sharded:
		return []string{"SPUBLISH c 0"}
	}
	return []string{"PUBLISH c 0"}
}

// run sends all lines at once: from afar they would take too long one by one.
func (r *rehearsal) run(ctx context.Context, lines []string) {
	commands := make(rueidis.Commands, len(lines))
	for i, line := range lines {
		words := strings.Fields(line)
		cmd := r.client.B().Arbitrary(words[0])
		for _, w := range words[1:] {
			switch w {
			case "k":
				cmd = cmd.Keys(r.key)
			case "c":
				cmd = cmd.Keys(r.channel) // a client sends it to the node of its slot
			default:
				cmd = cmd.Args(w)
			}
		}
		commands[i] = cmd.Build()
	}
	for i, reply := range r.client.DoMulti(ctx, commands...) {
		name := commandName(lines[i])
		switch err := reply.Error(); {
		case script.DeniedKeys(err) || deniedChannel(err): // the trials of locks and messages find that
		case script.Denied(err) && !r.refuses(name):
			r.refused = append(r.refused, name)
		case script.Unavailable(err) && !script.Denied(err) && r.failed == nil:
			r.failed = err
		}
	}
}

// commandName is how an ACL calls the command of a line.
func commandName(line string) string {
	words := strings.Fields(line)
	if words[0] == "PUBSUB" {
		return words[0] + "|" + words[1]
	}
	return words[0]
}

// looks are the commands that ls and top send besides, each so that it finds little.
var looks = []string{"SCAN 0 COUNT 1", "HSCAN k 0", "PUBSUB CHANNELS x", "PUBSUB SHARDCHANNELS x"}

// checkLooks names the commands that the command line needs beside what locks need, and the ACL refuses.
func checkLooks(ctx context.Context, client rueidis.Client, base string) Finding {
	const check = "command line"
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	r := rehearsal{client: client, key: base}
	r.run(ctx, looks)
	if r.refused != nil {
		return warn(check, "locks do not need it, but ls and top do: the ACL does not let this user run "+strings.Join(r.refused, ", "),
			"allow +"+strings.ToLower(strings.Join(r.refused, " +")))
	}
	return ok(check, "ls, show and top are allowed")
}

// deniedChannel reports whether err is the answer of a server that does not let this user at the
// channel: "access one of the channels", "access a channel", "access the 'x' channel".
func deniedChannel(err error) bool {
	return script.Denied(err) && strings.Contains(err.Error(), "permissions to access") && strings.Contains(err.Error(), "channel")
}
