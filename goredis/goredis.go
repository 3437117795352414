// Package goredis makes the options of a session out of those that an application has for
// github.com/redis/go-redis/v9, so that both reach the same Redis in the same way. It is a module of its
// own, so that the locks do not need go-redis. A session has connections of its own: it does not
// share those of a go-redis client.
package goredis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"relock/rlock"
)

// Options returns what [rlock.Dial] takes for what o says. It does no I/O.
//
//	Addrs                        InitAddress; without one, or with "" alone, 127.0.0.1:6379, of a Sentinel
//	                             127.0.0.1:26379; a path is a socket
//	MasterName                   Sentinel.MasterSet
//	SentinelUsername, -Password  Sentinel.Username, Sentinel.Password; as in go-redis no name without a password
//	DB                           SelectDB, but for a Cluster, which has one database; as in go-redis -1 selects none
//	Username, Password           the same; as in go-redis no name without a password
//	CredentialsProvider,         AuthCredentialsFn, in place of Username and Password;
//	CredentialsProviderContext   not asked for Sentinels
//	TLSConfig                    TLSConfig, and Sentinel.TLSConfig: for servers and Sentinels
//	Dialer                       DialCtxFn; as in go-redis TLSConfig has no effect beside it
//	DialTimeout                  Dialer.Timeout, also of Sentinels
//	ReadTimeout, WriteTimeout    ConnWriteTimeout: the longer of the two; 3 s without a ReadTimeout, unless
//	                             WriteTimeout is longer. It is never without end, as -1 is
//	ClientName, Protocol 2       ClientName, AlwaysRESP2
//	DisableIdentity              ClientSetInfo
//	ReadBufferSize,              ReadBufferEachConn, WriteBufferEachConn
//	WriteBufferSize
//
// [rlock.ErrConfig] says what cannot be: OnConnect, which is given a connection of go-redis, and
// StreamingCredentialsProvider, for which CredentialsProviderContext can stand in. o may not be nil.
//
// The rest has no effect. A session has one connection for commands, so that there is no pool; it goes to
// primaries, whatever ReadOnly, RouteByLatency and RouteRandomly say; it sends again what was not answered,
// whatever MaxRetries is; and it finds out by itself whether a server is a Cluster. The time that a
// connection may live (ConnMaxLifetime) must not be bounded for locks.
func Options(o *redis.UniversalOptions) (rueidis.ClientOption, error) {
	var opt rueidis.ClientOption
	switch {
	case o == nil:
		return opt, refuse("the UniversalOptions are nil; give those of the application's client")
	case o.OnConnect != nil:
		return opt, refuse("OnConnect is given a connection of go-redis; leave it out, and use Username, ClientName and the like")
	case o.StreamingCredentialsProvider != nil:
		return opt, refuse("StreamingCredentialsProvider changes the credentials of open connections; give CredentialsProviderContext, which is asked for each new one")
	case o.Protocol != 0 && o.Protocol != 2 && o.Protocol != 3:
		return opt, refuse("Protocol is %d; it must be 2 or 3, or 0 for 3", o.Protocol)
	}
	opt.InitAddress = append(opt.InitAddress, o.Addrs...)
	switch {
	case len(o.Addrs) > 1 || len(o.Addrs) == 1 && o.Addrs[0] != "":
	case o.MasterName != "":
		opt.InitAddress = []string{"127.0.0.1:26379"}
	default:
		opt.InitAddress = []string{"127.0.0.1:6379"}
	}
	if cluster := o.IsClusterMode || len(o.Addrs) > 1; o.MasterName != "" || !cluster {
		opt.SelectDB = max(0, o.DB)
	}
	opt.Sentinel.MasterSet = o.MasterName
	sentinel := user(o.SentinelUsername, o.SentinelPassword)
	opt.Sentinel.Username, opt.Sentinel.Password = sentinel.Username, sentinel.Password
	opt.ClientName, opt.AlwaysRESP2 = o.ClientName, o.Protocol == 2
	//lint:ignore SA1019 applications may still set it
	if o.DisableIdentity || o.DisableIndentity {
		opt.ClientSetInfo = rueidis.DisableClientSetInfo
	}
	opt.ReadBufferEachConn, opt.WriteBufferEachConn = max(0, o.ReadBufferSize), max(0, o.WriteBufferSize)
	opt.ConnWriteTimeout = timeout(o)
	opt.Dialer.Timeout = max(0, o.DialTimeout)
	opt.Sentinel.Dialer.Timeout = opt.Dialer.Timeout
	credentials(&opt, o)
	dialling(&opt, o)
	if o.MasterName != "" && opt.AuthCredentialsFn != nil {
		apart(&opt)
	}
	return opt, nil
}

// unset is the timeout of a session that is given none.
const unset = 3 * time.Second

// timeout is how long a connection may say nothing. A short one for writing alone leaves the default for reading.
func timeout(o *redis.UniversalOptions) time.Duration {
	if o.ReadTimeout == 0 && o.WriteTimeout < unset {
		return 0
	}
	return max(0, o.ReadTimeout, o.WriteTimeout)
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("goredis: %w: "+format, append([]any{rlock.ErrConfig}, args...)...)
}

// user returns the credentials that go-redis sends: without a password none, also beside a name.
func user(name, password string) rueidis.AuthCredentials {
	if password == "" {
		return rueidis.AuthCredentials{}
	}
	return rueidis.AuthCredentials{Username: name, Password: password}
}

// credentials sets who the client is, by what go-redis would ask first.
func credentials(opt *rueidis.ClientOption, o *redis.UniversalOptions) {
	switch {
	case o.CredentialsProviderContext != nil:
		opt.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			username, password, err := o.CredentialsProviderContext(context.Background())
			return user(username, password), err
		}
	case o.CredentialsProvider != nil:
		opt.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			return user(o.CredentialsProvider()), nil
		}
	default:
		own := user(o.Username, o.Password)
		opt.Username, opt.Password = own.Username, own.Password
	}
}

// dialling sets how connections are made.
func dialling(opt *rueidis.ClientOption, o *redis.UniversalOptions) {
	switch {
	case o.Dialer != nil:
		opt.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return o.Dialer(ctx, network(addr), addr)
		}
	case strings.HasPrefix(opt.InitAddress[0], "/"):
		opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if o.TLSConfig != nil {
				return (&tls.Dialer{NetDialer: d, Config: o.TLSConfig}).DialContext(ctx, network(addr), addr)
			}
			return d.DialContext(ctx, network(addr), addr)
		}
	case o.TLSConfig != nil:
		opt.TLSConfig = o.TLSConfig
		if o.MasterName != "" {
			opt.Sentinel.TLSConfig = o.TLSConfig
		}
	}
}

// network is what go-redis takes an address for.
func network(addr string) string {
	if strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}
