package locktest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Many is the name of the locks for which a [Crowd] waits, and crowdLine the key of their line.
const (
	Many      = "many"
	crowdLine = "relock_line1:{" + Many + "}"
)

// A Crowd is a kind of lock for which thousands of sessions wait. Those are not there: their entries are made by what
// a real session sends to enter the line, with another id each.
type Crowd struct {
	Hold func(ctx context.Context, ses *rlock.Session) error // takes the lock, so that others wait
	Wait func(ctx context.Context, ses *rlock.Session) error // waits for it
	Slow string                                              // what the entry of a slow taker begins with; "": there are none
	Acts map[string]CrowdAct                                 // what may happen
}

// A CrowdAct is what may happen to a lock for which many wait: it prepares the lock, has the crowd come, says From,
// and goes on with what is measured, by real sessions.
type CrowdAct func(ctx context.Context, c *CrowdScene)

// A CrowdScene is one run of a CrowdAct.
type CrowdScene struct {
	testing.TB
	s       *redistest.Server
	crowd   string // the key of a line in which the crowd stands, and nobody else
	most    int    // how many scripts are measured
	proxies []*faulttest.Proxy
	ends    []func() error
}

// crowdPassed is the score from which on entries were passed over, see line.lua.
const crowdPassed = "2400000000000000"

// crowdKeys are what the keys begin with that a scene keeps when it begins.
const crowdKeys = "crowd:"

// Session makes a session that does nothing by the clock, or looks every so often.
func (c *CrowdScene) Session(looks ...time.Duration) *rlock.Session {
	c.Helper()
	cfg := rlock.Config{Lease: time.Hour, PollFloor: time.Hour, QueueLease: time.Hour}
	if looks != nil {
		cfg.PollFloor, cfg.QueueLease = looks[0], 5*looks[0]
	}
	return c.dial(cfg)
}

func (c *CrowdScene) dial(cfg rlock.Config) *rlock.Session {
	c.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	p, opt := faulttest.Of(c, c.s.Option())
	ses, err := rlock.Dial(context.Background(), opt, cfg)
	Must(c, err)
	c.proxies = append(c.proxies, p)
	c.ends = append(c.ends, ses.Close)
	return ses
}

// Come has the crowd stand in the line, which must be empty.
func (c *CrowdScene) Come() {
	c.Helper()
	c.Do("COPY", c.crowd, crowdLine, "REPLACE")
}

// Enter begins to wait behind the crowd, and returns when the session stands there: in the middle of the line from
// then on if that is wanted.
func (c *CrowdScene) Enter(ctx context.Context, ses *rlock.Session, middle bool, wait func(context.Context, *rlock.Session) error) (ended <-chan error) {
	c.Helper()
	done := make(chan error, 1)
	go func() { done <- wait(ctx, ses) }()
	var entry string
	redistest.Eventually(c, 20*time.Second, "the session to stand in the line", func() bool {
		last, err := c.s.Do(c, "ZREVRANGEBYSCORE", crowdLine, crowdPassed, "0", "LIMIT", "0", "1").AsStrSlice()
		Must(c, err)
		if len(last) > 0 && strings.Contains(last[0], ses.ID()) {
			entry = last[0]
		}
		return entry != ""
	})
	if middle {
		there, err := c.s.Do(c, "ZRANGEBYSCORE", crowdLine, "0", crowdPassed, "WITHSCORES", "LIMIT", strconv.FormatInt(c.inLine(crowdLine)/2, 10), "1").ToArray()
		Must(c, err)
		c.Do("ZADD", crowdLine, "XX", scoreOf(c, there), entry)
	}
	return done
}

// inLine returns how many stand in a line who were not passed over.
func (c *CrowdScene) inLine(key string) int64 {
	c.Helper()
	n, err := c.s.Do(c, "ZCOUNT", key, "0", crowdPassed).AsInt64()
	Must(c, err)
	return n
}

// Looks holds the next look of the session back that was made last, has something happen and says From, and lets the
// look arrive, which is measured.
func (c *CrowdScene) Looks(happens func(c *CrowdScene)) {
	c.Helper()
	seen, release := c.proxies[len(c.proxies)-1].HoldRequest(func(cmd []string) bool {
		return strings.EqualFold(cmd[0], "EVALSHA") && slices.ContainsFunc(cmd, func(arg string) bool { return strings.Contains(arg, Many) })
	})
	defer release()
	Get(c, seen, 20*time.Second, "a look")
	happens(c)
	c.From()
	release()
	c.Await(1)
}

// scoreOf returns the score of one member: RESP3 has it in an array of its own.
func scoreOf(t testing.TB, reply []rueidis.RedisMessage) string {
	t.Helper()
	if len(reply) == 1 {
		pair, err := reply[0].ToArray()
		Must(t, err)
		reply = pair
	}
	f, err := reply[1].AsFloat64()
	Must(t, err)
	return strconv.FormatFloat(f, 'f', 0, 64)
}

// Do runs a command that prepares the lock.
func (c *CrowdScene) Do(args ...string) {
	c.Helper()
	Must(c, c.s.Do(c, args...).Error())
}

// From notes what Redis has, and what the sessions send from now on.
func (c *CrowdScene) From() {
	c.Helper()
	for _, k := range c.keys() {
		if !strings.HasPrefix(k, crowdKeys) {
			c.Do("COPY", k, crowdKeys+"then:"+k, "REPLACE")
		}
	}
	for _, p := range c.proxies {
		p.Reset()
	}
}

// Await waits until the sessions have sent so many scripts since From, which are those that are measured.
func (c *CrowdScene) Await(n int) {
	c.Helper()
	c.sent(n)
	c.most = n
}

// sent waits until the sessions have sent so many scripts since From, and returns those that are about the lock.
func (c *CrowdScene) sent(least int) (scripts [][]string) {
	c.Helper()
	redistest.Eventually(c, 20*time.Second, fmt.Sprintf("%d scripts", least), func() bool {
		scripts = nil
		for _, p := range c.proxies {
			for _, cmd := range p.Sent() {
				if strings.EqualFold(cmd[0], "EVALSHA") && strings.Contains(strings.Join(cmd[3:], " "), Many) {
					scripts = append(scripts, cmd)
				}
			}
		}
		return len(scripts) >= least
	})
	return scripts
}

// end closes the sessions, which have no lock any more: else they would go on to let the crowd in.
func (c *CrowdScene) end() {
	c.clear(false)
	for _, end := range c.ends {
		_ = end()
	}
	c.proxies, c.ends = nil, nil
}

// keys returns all keys but for the records of sessions. Marks of a ForceUnlock are among them.
func (c *CrowdScene) keys() []string {
	c.Helper()
	keys, err := c.s.Do(c, "KEYS", "*").AsStrSlice()
	Must(c, err)
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasPrefix(key, "relock_session:") })
}

// clear deletes all keys but the crowds, or also what From noted.
func (c *CrowdScene) clear(then bool) {
	c.Helper()
	for _, k := range c.keys() {
		if !strings.HasPrefix(k, crowdKeys) || then && strings.HasPrefix(k, crowdKeys+"then:") {
			c.Do("DEL", k)
		}
	}
}

// restore has Redis have what it had when From was called.
func (c *CrowdScene) restore() {
	c.Helper()
	c.clear(false)
	for _, k := range c.keys() {
		if key, ok := strings.CutPrefix(k, crowdKeys+"then:"); ok {
			c.Do("COPY", k, key, "REPLACE")
		}
	}
}
