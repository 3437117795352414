package engine

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
	"relock/internal/script"
)

//go:embed lua/*.lua
var scripts embed.FS

var (
	recordScript = script.Load(scripts, "lua/record.lua")
	probeScript  = script.Load(scripts, "lua/probe.lua")
	crossScript  = script.Load(scripts, "lua/cross.lua")
)

// A record says in Redis who a session is, for as long as the session lives.
type record struct {
	ttl     time.Duration
	due     atomic.Int64 // when it is to be written again, as a time.Duration; never while it is
	started string       // by Redis's clock; "" if it was refused
}

// recordTTL is for how long a record outlives its process at least. It is written again every
// third of it, which is a fraction of a percent of what an idle session sends.
const recordTTL = 3 * time.Minute

// recordKey is the key of the session's record: it is named as the session's own channel is.
func (s *Session) recordKey() string { return SessionChannel + s.id }

// recordText returns what stands in the record before and after the time when the session began.
func (s *Session) recordText() (before, after string) {
	label, _ := json.Marshal(s.cfg.Label) // of strings: it cannot fail
	number, _ := json.Marshal(version())
	return `{"label":` + string(label) + `,"started":`, `,"version":` + string(number) + `}`
}

// recordCommand writes the record for the first time.
func (s *Session) recordCommand() script.Command {
	before, after := s.recordText()
	return script.Command{Script: recordScript, Keys: []string{s.recordKey()}, Args: []string{before, after, script.Millis(s.record.ttl)}}
}

// recorded takes in the answer to that. Where it is refused the session works without.
func (s *Session) recorded(r rueidis.RedisResult) {
	started, err := r.ToString()
	if err != nil {
		s.record.due.Store(int64(never))
		s.notify(func() {
			s.cfg.Logger.Debug("relock: the session's record was not written", "key", s.recordKey(), "error", err)
		})
		return
	}
	s.record.started = started
	s.record.due.Store(int64(s.now() + s.record.ttl/3))
}

// keepRecord writes the record again.
func (s *Session) keepRecord() {
	ctx, cancel := context.WithTimeout(s.life.ctx, s.cfg.ReleaseTimeout)
	defer cancel()
	before, after := s.recordText()
	set := s.client.B().Set().Key(s.recordKey()).Value(before + s.record.started + after).Px(s.record.ttl).Build()
	if err := s.client.Do(ctx, set).Error(); err != nil {
		s.notify(func() {
			s.cfg.Logger.Debug("relock: the session's record was not renewed", "key", s.recordKey(), "error", err)
		})
	}
	due := s.now() + s.record.ttl/3
	s.record.due.Store(int64(due))
	s.schedule.WakeAt(due)
}

// dropRecord deletes the record, unless Redis does not answer: then its TTL does. The command
// has a goroutine of its own, since it may have to wait for a connection whatever ctx says.
func (s *Session) dropRecord() {
	if s.record.started == "" || s.cleanup.Unconfirmed() > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	done := make(chan struct{})
	s.life.background.Go(func() {
		defer close(done)
		defer cancel()
		_ = s.client.Do(ctx, s.client.B().Del().Key(s.recordKey()).Build()).Error()
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// version returns the version of this module, as far as the program knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(devel)"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == "relock" && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
}

// defaultLabel is "<host>:<pid>".
func defaultLabel() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}

// begin finds out in one round trip whether locks can work here, and writes the session's
// record. What the server can never do is an error that says how to change that.
func (s *Session) begin(ctx context.Context) error {
	own := s.cfg.Prefix + "relock_probe:" + rand.Text() // without a prefix the README's ACL allows it
	channel := keyname.Style{Cluster: s.cluster}.Prefix("redisson_lock__channel", own)
	cmds := []script.Command{
		{Script: probeScript, Keys: []string{own}, Args: []string{channel, s.publish}},
		s.recordCommand(),
	}
	if !s.cluster {
		cmds = append(cmds, script.Command{Script: crossScript, Keys: []string{"relock_probe:{a}", "relock_probe:{b}"}})
	}
	results := s.run.Multi(ctx, cmds)
	s.recorded(results[1])
	if !s.cluster {
		if err := s.wrongServer(results[2].Error()); err != nil {
			return err
		}
	}
	if err := s.wrongServer(results[0].Error()); err != nil {
		return err
	}
	return s.checkReplicas(ctx)
}

// wrongServer returns what to do about a server that cannot run locks, by the error of a probe.
// An error that may pass, or concerns keys that locks may not be named by, is none.
func (s *Session) wrongServer(err error) error {
	if err == nil {
		return nil
	}
	text := script.Text(err)
	begins := func(code string) bool { return strings.HasPrefix(text, code) }
	remedy := ""
	switch {
	case begins("READONLY"):
		remedy = "the server is a replica; give the address of the primary, or use Sentinel or Cluster options, with which the client finds it"
	case begins("MOVED"), begins("CROSSSLOT"), begins("CLUSTERDOWN") && !s.cluster:
		remedy = "the server is a node of a Redis Cluster, and the client is for a single server; remove ForceSingleClient and SelectDB from its options"
	case begins("OLD"):
		remedy = "the server is older than Redis 6.2; use a later one"
	case begins("PUBLISH"):
		remedy = "the ACL does not let this user publish; allow +publish (in a Cluster +spublish) and the channels that the README lists, or waiters are never woken"
	case script.DeniedKeys(err) && s.cfg.Prefix == "":
		return nil // the names of the locks may well be allowed
	case script.DeniedKeys(err):
		remedy = fmt.Sprintf("the ACL does not let this user use keys that begin with Config.Prefix (%s); allow the keys that the README lists", Quote(s.cfg.Prefix))
	case script.Denied(err), begins("unknown command"):
		remedy = "the ACL does not let this user run scripts, or the commands in them; allow +eval, +evalsha and the commands that the README lists"
	case s.cluster && script.Unavailable(err):
		return nil // the node of the probe's slot is down, and locks of other slots may work
	default:
		return unavailable(err)
	}
	return fmt.Errorf("%w: %s: %w", ErrConfig, remedy, unavailable(err))
}
