package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/redis"
	"relock/internal/script"
	"relock/internal/test/redistest"
)

func send(t *testing.T, client rueidis.Client, cmds []script.Command) (replies []rueidis.RedisResult) {
	t.Helper()
	for _, c := range cmds {
		replies = append(replies, client.Do(t.Context(), client.B().Eval().Script(c.Script.Source()).Numkeys(int64(len(c.Keys))).Key(c.Keys...).Arg(c.Args...).Build()))
	}
	return replies
}

// A probe finds nothing wrong with a good server, leaves nothing behind, and may run twice.
func TestProbeOfAGoodServer(t *testing.T) {
	redistest.Each(t, func(t *testing.T, s *redistest.Server) {
		client := s.Client(t)
		server := redis.Server{Prefix: "app:", Publish: "PUBLISH"}
		cmds := server.Commands()
		for range 2 {
			if err := server.Verdict(send(t, client, cmds)); err != nil {
				t.Error(err)
			}
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("left behind: %q", keys)
		}
		if server.Publish = "NOSUCH"; server.Verdict(send(t, client, server.Commands())) == nil {
			t.Error("a server that cannot publish is good")
		}
	})
}

// A probe that the ACL refuses in the middle leaves nothing behind either.
func TestAProbeThatIsRefusedLeavesNothing(t *testing.T) {
	s := redistest.Real(t)
	server := redis.Server{Prefix: "app:", Publish: "PUBLISH"}
	for _, refused := range []string{"-del", "-pexpire", "-del -pexpire", "-zadd", "-hincrby", "-publish"} {
		rules := []string{"ACL", "SETUSER", "u", "reset", "on", ">secret", "~*", "&*", "+@all"}
		if err := s.Do(t, append(rules, strings.Fields(refused)...)...).Error(); err != nil {
			t.Fatal(err)
		}
		client := s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "u", "secret" })
		if err := server.Verdict(send(t, client, server.Commands())); !errors.Is(err, api.ErrConfig) && refused != "-zadd" {
			t.Errorf("%s: %v", refused, err)
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("%s: left behind: %q", refused, keys)
			s.FlushAll(t)
		}
	}
}

// A command that the server does not know under its name, be it one that runs scripts or one in them, is told with what to
// do about it.
func TestVerdictOnRenamedCommands(t *testing.T) {
	for _, name := range []string{"EVAL", "DEL", "PEXPIRE", "HINCRBY", "PUBLISH"} {
		s := redistest.Real(t, "--rename-command", name, "")
		server := redis.Server{Publish: "PUBLISH"}
		err := server.Verdict(send(t, s.Client(t), server.Commands()))
		if !errors.Is(err, api.ErrConfig) || !strings.Contains(err.Error(), "rename-command") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a server can never do is told with what to do about it; what may pass is ErrUnavailable.
func TestVerdict(t *testing.T) {
	client := redistest.Mini(t).Client(t)
	failing := func(text string) rueidis.RedisResult {
		return client.Do(t.Context(), client.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(text).Build())
	}
	good := client.Do(t.Context(), client.B().Ping().Build())
	single, prefixed, cluster := redis.Server{}, redis.Server{Prefix: "app:"}, redis.Server{Cluster: true}
	for _, c := range []struct {
		server redis.Server
		reply  string
		want   error
		remedy string
	}{
		{single, "READONLY You can't write against a read only replica.", api.ErrConfig, "the server is a replica"},
		{single, "CROSSSLOT Keys in request don't hash to the same slot", api.ErrConfig, "a node of a Redis Cluster"},
		{single, "CLUSTERDOWN Hash slot not served", api.ErrConfig, "a node of a Redis Cluster"},
		{cluster, "CLUSTERDOWN Hash slot not served", nil, ""},
		{single, "OLD ERR syntax error", api.ErrConfig, "older than Redis 6.2"},
		{single, "NOPERM this user has no permissions to run the 'publish' command (PUBLISH)", api.ErrConfig, "+publish"},
		{single, "NOPERM this user has no permissions to run the 'publish' command (PUBLISH)", api.ErrUnavailable, "+publish"},
		{single, "NOPERM No permissions to access a key", nil, ""},
		{prefixed, "NOPERM No permissions to access a key", api.ErrConfig, `"app:"`},
		{single, "NOPERM this user has no permissions to run the 'evalsha' command", api.ErrConfig, "+eval"},
		{single, "unknown command 'EVALSHA', with args beginning with: ", api.ErrConfig, "rename-command"},
		{single, "Error running script (call to f_0): @user_script:7: @user_script: 7: Unknown Redis command called from Lua script", api.ErrConfig, "rename-command"},
		{single, "LOADING Redis is loading the dataset in memory", api.ErrUnavailable, "LOADING"},
		{cluster, "LOADING Redis is loading the dataset in memory", nil, ""},
		{single, "WRONGTYPE Operation", nil, "WRONGTYPE"},
	} {
		err := c.server.Verdict([]rueidis.RedisResult{failing(c.reply), good})
		switch {
		case c.want == nil && c.remedy == "":
			if err != nil {
				t.Errorf("%s: %v", c.reply, err)
			}
		case err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.remedy):
			t.Errorf("%s: %v, want %q", c.reply, err, c.remedy)
		}
	}
	// A node of a Cluster may refuse the probe for a reason that misleads.
	if err := single.Verdict([]rueidis.RedisResult{failing("OLD"), failing("CROSSSLOT")}); err == nil || !strings.Contains(err.Error(), "Cluster") {
		t.Error(err)
	}
}
