package main

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// samples are the commands that the scripts of locks run, each so that it changes nothing on a key
// that is not there: Redis looks at permissions before it looks at values.
var samples = [...]string{
	"EXISTS k", "TIME", "DEL k", "PEXPIRE k 1", "PERSIST k", "PTTL k", "GET k", "SET k v NX XX", "INCRBY k x", "DECRBY k x",
	"HGET k f", "HMGET k f", "HSET k f v f", "HEXISTS k f", "HLEN k", "HINCRBY k f x", "HDEL k f", "HKEYS k", "HGETALL k", "HSCAN k 0",
	"SREM k m", "SISMEMBER k m", "SMEMBERS k", "SCARD k",
	"ZADD k x m", "ZREM k m", "ZPOPMIN k", "ZSCORE k m", "ZCARD k", "ZCOUNT k 0 1", "ZRANGE k 0 1", "ZREVRANGE k 0 1",
	"ZRANGEBYSCORE k 0 1", "ZREMRANGEBYSCORE k 0 1",
}

// checkCommands names the commands of scripts that the ACL does not allow: a script that is refused
// one does not always say which, and some are not needed before an operator ends a lock.
func checkCommands(ctx context.Context, client rueidis.Client, base string) Finding {
	const check = "commands"
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	key := base + ":" + check
	var refused []string
	run := func(words ...string) error {
		cmd := client.B().Arbitrary(words[0])
		for _, w := range words[1:] {
			if w == "k" {
				cmd = cmd.Keys(key)
			} else {
				cmd = cmd.Args(w)
			}
		}
		err := client.Do(ctx, cmd.Build()).Error()
		if script.Denied(err) && !script.DeniedKeys(err) {
			refused = append(refused, words[0])
		}
		return err
	}
	for _, sample := range samples {
		if err := run(strings.Fields(sample)...); script.Unavailable(err) && !script.Denied(err) {
			return warn(check, "it is not known which are allowed: "+err.Error(), "look at the error, and at the server's log")
		}
	}
	// SADD has no arguments that it always refuses, so it gets a key of another type.
	if client.Do(ctx, client.B().Set().Key(key).Value("v").Px(tryLease).Build()).Error() == nil {
		_ = run("SADD", "k", "m")
		_ = client.Do(ctx, client.B().Del().Key(key).Build()).Error() // else it expires
	}
	if refused == nil {
		return ok(check, "all that locks run in scripts are allowed")
	}
	return fail(check, "the ACL does not let this user run "+strings.Join(refused, ", "),
		"allow +"+strings.ToLower(strings.Join(refused, " +")))
}
