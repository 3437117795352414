package connect

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/script"
)

// Words are how a caller has said what the client is to do, for the texts of errors.
type Words struct {
	Source   string // of the options
	Password string // what to do where a server asks for one
	Servers  TLS
	Sentinel TLS // where the addresses are those of Sentinels
}

// TLS is what to do about it.
type TLS struct {
	Use         string // for a server that speaks TLS only
	Leave       string // for one that does not
	Certificate string // why there is none
}

// Options are the words for rueidis.ClientOption, and URL those for a URL.
var (
	Options = Words{
		Source:   "ClientOption",
		Password: "set ClientOption.Password; for Sentinels, ClientOption.Sentinel.Password",
		Servers: TLS{"set ClientOption.TLSConfig", "leave ClientOption.TLSConfig out",
			"ClientOption.TLSConfig has none"},
		Sentinel: TLS{"set ClientOption.Sentinel.TLSConfig", "leave ClientOption.Sentinel.TLSConfig out",
			"ClientOption.Sentinel.TLSConfig has none"},
	}
	URL = Words{
		Source:   "the URL",
		Password: "begin the URL with redis://user:password@ or redis://:password@; for Sentinels, add sentinel_password",
		Servers:  TLS{"begin the URL with rediss://", "begin the URL with redis://", "the URL has none: cert and key"},
		Sentinel: TLS{"begin the URL with rediss://, without sentinel_tls=false", "add sentinel_tls=false", "the URL has none: cert and key"},
	}
)

// tls returns what opt says of TLS to the servers at its addresses, and what to do about it.
func (w *Words) tls(opt *rueidis.ClientOption) (*tls.Config, TLS) {
	if opt.Sentinel.MasterSet != "" {
		return opt.Sentinel.TLSConfig, w.Sentinel
	}
	return opt.TLSConfig, w.Servers
}

// Explain is the error err of a client that could not be made of opt. ctx is what bounds the making; what
// it takes to ask the servers is bounded besides.
func Explain(ctx context.Context, opt rueidis.ClientOption, err error, words Words) error {
	cfg, what := words.tls(&opt)
	_, refused := rueidis.IsRedisErr(err)
	text := script.Text(err)
	for i, s := range speakTLS(ctx, opt) {
		addr := opt.InitAddress[i]
		switch {
		case !s.answers:
		case s.encrypted && cfg == nil:
			return fmt.Errorf("%w: the server at %s speaks TLS only; %s: %w", api.ErrConfig, addr, what.Use, err)
		case !s.encrypted && cfg != nil:
			return fmt.Errorf("%w: the server at %s does not speak TLS; %s, or give its TLS port: %w", api.ErrConfig, addr, what.Leave, err)
		case s.asks && !refused && len(cfg.Certificates) == 0 && cfg.GetClientCertificate == nil: // it may do without one
			err = fmt.Errorf("the server at %s asks for a certificate of the client, and %s: %w", addr, what.Certificate, err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w: %w", ctx.Err(), api.ErrUnavailable, err)
	case errors.Is(err, rueidis.ErrNoCache) && !script.Passes(err): // its word for any such refusal; nothing here is cached
		return fmt.Errorf("%w: the server refuses a CLIENT command that %s asks for; leave that option out, or allow the command: %w", api.ErrConfig, words.Source, err)
	case refused && strings.HasPrefix(text, "NOAUTH"):
		return fmt.Errorf("%w: the server asks for a password; %s: %w", api.ErrUnavailable, words.Password, err)
	case script.Unavailable(err):
		return fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	case refused && strings.Contains(text, "cluster support disabled"): // rueidis takes several addresses for those of a Cluster
		return fmt.Errorf("%w: %s has several addresses, which are those of a Redis Cluster or of Sentinels, and the server is not of "+
			"a Cluster; give one address, or the name of the Sentinels' master set: %w", api.ErrConfig, words.Source, err)
	}
	if refused {
		return fmt.Errorf("%w: the server refuses what %s asks for: %w", api.ErrConfig, words.Source, err)
	}
	return err
}
