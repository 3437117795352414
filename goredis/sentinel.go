package goredis

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
)

// rueidis asks AuthCredentialsFn for the credentials of Sentinels too, and forgets Sentinel.Username and Password
// then. All that it says of a connection is the address at its other end. So the connections to Sentinels get one
// that can be told from others.

// apart gives Sentinels the credentials of opt.Sentinel, whatever opt.AuthCredentialsFn says. rueidis dials them
// with a copy of opt.Sentinel.Dialer, which a Resolver of its own marks: an empty one resolves as none does.
func apart(opt *rueidis.ClientOption) {
	mark, dial, ask := new(net.Resolver), opt.DialCtxFn, opt.AuthCredentialsFn
	opt.Sentinel.Dialer.Resolver = mark
	opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (c net.Conn, err error) {
		switch {
		case dial != nil:
			c, err = dial(ctx, addr, d, tc)
		case tc != nil:
			c, err = (&tls.Dialer{NetDialer: d, Config: tc}).DialContext(ctx, "tcp", addr)
		default:
			c, err = d.DialContext(ctx, "tcp", addr)
		}
		if err == nil && d.Resolver == mark {
			c = toSentinel{c}
		}
		return c, err
	}
	own := rueidis.AuthCredentials{Username: opt.Sentinel.Username, Password: opt.Sentinel.Password}
	opt.AuthCredentialsFn = func(of rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
		if _, is := of.Address.(sentinelAddr); is {
			return own, nil
		}
		return ask(of)
	}
}

// toSentinel is a connection to a Sentinel.
type toSentinel struct{ net.Conn }

func (c toSentinel) RemoteAddr() net.Addr { return sentinelAddr{c.Conn.RemoteAddr()} }

// NetConn returns what is wrapped, as that of a tls.Conn does.
func (c toSentinel) NetConn() net.Conn { return c.Conn }

type sentinelAddr struct{ net.Addr }
