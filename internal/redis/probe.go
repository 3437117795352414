package redis

import (
	"crypto/rand"
	"embed"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/inbox"
	"relock/internal/keyname"
	"relock/internal/script"
)

//go:embed lua/*.lua
var scripts embed.FS

var (
	probeScript = script.Load(scripts, "lua/probe.lua")
	crossScript = script.Load(scripts, "lua/cross.lua")
)

// A Server is what the client thinks that it has to do with.
type Server struct {
	Prefix  string // Config.Prefix
	Cluster bool
	Publish string // PUBLISH or SPUBLISH
}

// Commands returns what to ask, for one round trip.
func (s Server) Commands() []script.Command {
	random := rand.Text()
	own := s.Prefix + "relock_probe:" + random // without a prefix the documented ACL allows it
	channel := keyname.Style{Cluster: s.Cluster}.Prefix("redisson_lock__channel", own)
	cmds := []script.Command{{Script: probeScript, Keys: []string{own}, Args: []string{channel, s.Publish, inbox.Prefix + random}}}
	if !s.Cluster {
		cmds = append(cmds, script.Command{Script: crossScript, Keys: []string{"relock_probe:{a}", "relock_probe:{b}"}})
	}
	return cmds
}

// Mute reports whether the replies to Commands say that this user may not publish on the channels of other
// sessions, so that it can neither grant them a lock nor call them.
func (s Server) Mute(replies []rueidis.RedisResult) bool {
	n, err := replies[0].AsInt64()
	return err == nil && n == 2
}

// Verdict returns what the replies to Commands say: [api.ErrConfig] with what to do about a
// server that can never run locks, [api.ErrUnavailable] if it cannot now. The last command
// goes first: that the server is of another kind explains the failure of those before.
func (s Server) Verdict(replies []rueidis.RedisResult) error {
	for i := len(replies) - 1; i >= 0; i-- {
		if err := s.verdict(replies[i].Error()); err != nil {
			return err
		}
	}
	return nil
}

// verdict is for the error of one reply. An error that may pass, or concerns keys that locks may
// not be named by, is none.
func (s Server) verdict(err error) error {
	if err == nil {
		return nil
	}
	text := script.Text(err)
	begins := func(code string) bool { return strings.HasPrefix(text, code) }
	remedy := ""
	switch {
	case begins("READONLY"):
		remedy = "the server is a replica; give the address of the primary, or use Sentinel or Cluster options, with which the client finds it"
	case begins("MOVED"), begins("CROSSSLOT"), begins("CLUSTERDOWN") && !s.Cluster:
		remedy = "the server is a node of a Redis Cluster, and the client is for a single server; remove ForceSingleClient and SelectDB from its options, or, " +
			"if it has neither, allow +cluster|slots and +cluster|shards to this user: without them the client takes the node for a single server"
	case begins("OLD"):
		remedy = "the server is older than Redis 6.2; use a later one"
	case script.Lacks(err):
		return script.AsUnavailable(err)
	case strings.HasSuffix(text, "PUBLISH)"):
		remedy = "the ACL does not let this user publish; allow +publish (in a Cluster +spublish) and the channels that docs/operations.md#acl lists, or waiters are never woken"
	case script.DeniedKeys(err) && s.Prefix == "":
		return nil // the names of the locks may well be allowed
	case script.DeniedKeys(err):
		remedy = fmt.Sprintf("the ACL does not let this user use keys that begin with Config.Prefix (%s); allow the keys that docs/operations.md#acl lists", api.Quote(s.Prefix))
	case script.Denied(err):
		remedy = "the ACL does not let this user run scripts, or the commands in them; allow +eval, +evalsha and the commands that docs/operations.md#acl lists"
	case s.Cluster && script.Unavailable(err):
		return nil // the node of the probe's slot is down, and locks of other slots may work
	default:
		return script.AsUnavailable(err)
	}
	return fmt.Errorf("%w: %s: %w", api.ErrConfig, remedy, script.AsUnavailable(err))
}
