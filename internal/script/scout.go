package script

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// A Scout finds out what the name of a server leads to now, over a connection of its own.
type Scout struct {
	conn *Connection
	opt  rueidis.ClientOption
}

// scoutPatience bounds how long a Scout waits for the answer of a server that it is connected to.
const scoutPatience = time.Second

// NewScout returns a Scout that connects to the first address of opt by dial.
func NewScout(conn *Connection, opt rueidis.ClientOption, dial DialFunc) *Scout {
	dial = within(conn, opt.Dialer.KeepAlive, dial)
	opt = alone(opt)
	opt.Standalone = rueidis.StandaloneOption{} // it is for one address as well
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		c, err := dial(ctx, addr, d, tc)
		if err != nil {
			return nil, err
		}
		return conn.Keep(c), nil
	}
	return &Scout{conn, opt}
}

// serves reports whether the name leads to a server that has loaded its data.
func (s *Scout) serves() bool {
	client, err := rueidis.NewClient(s.opt)
	if err != nil {
		return false
	}
	defer client.Close()
	res := ask(s.conn.Life(), client)
	return res.NonRedisError() == nil && !loads(res.Error())
}

// ask asks a server for a script that there is none of: what it answers beside NOSCRIPT it answers to scripts.
// A server that loads says so only of commands that the user may use, and every user may run scripts.
func ask(ctx context.Context, client rueidis.Client) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, scoutPatience)
	defer cancel()
	return client.Do(ctx, client.B().Evalsha().Sha1(noScript).Numkeys(0).Build())
}

var noScript = strings.Repeat("0", 40)

// stillLoads asks the session's own server whether it loads its data; no answer counts as that.
func (c *Connection) stillLoads() bool {
	res := ask(c.life, c.moves.client)
	return res.NonRedisError() != nil || loads(res.Error())
}
