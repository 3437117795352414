package connect

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/api"
)

const (
	like    = "it must be like redis://user:password@host:6379/0"
	escaped = "in a user name, a password or a parameter @ is %40, / is %2F, ? is %3F, # is %23 and % is %25"
)

// The ports of addresses that name none.
const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// ParseURL returns the options of a URL. Its error is [api.ErrConfig], and says what would be right.
func ParseURL(raw string) (rueidis.ClientOption, error) {
	u, err := url.Parse(raw)
	if err != nil { // its text has parts of raw
		return rueidis.ClientOption{}, bad("the URL cannot be read; %s; %s", like, escaped)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return rueidis.ClientOption{}, bad("the parameters of the URL cannot be read; %s; %s", like, escaped)
	}
	if err := check(u, q); err != nil {
		return rueidis.ClientOption{}, err
	}
	addrs, err := addresses(u, q)
	if err != nil {
		return rueidis.ClientOption{}, err
	}
	u.Path = strings.TrimSuffix(u.Path, "/") // to rueidis "/" is a database without a number
	opt, err := rueidis.ParseURL(u.String())
	if err != nil {
		return rueidis.ClientOption{}, bad("the client refuses the URL; %s", like)
	}
	if addrs != nil {
		opt.InitAddress = addrs
	}
	opt.Sentinel.Username, opt.Sentinel.Password = q.Get("sentinel_username"), q.Get("sentinel_password")
	return opt, secure(&opt, q)
}

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{api.ErrConfig}, args...)...)
}

// check refuses what rueidis would misunderstand, or would refuse with a text that has parts of the URL.
func check(u *url.URL, q url.Values) error {
	switch u.Scheme {
	case "redis", "rediss", "valkey", "valkeys", "unix":
	default:
		return bad("the URL must begin with redis://, rediss:// (TLS), valkey://, valkeys:// or unix://, also for Sentinels and a Cluster; %s", like)
	}
	switch {
	case u.Fragment != "" || strings.Contains(u.Path, "@") && u.Scheme != "unix" || strings.Contains(u.RawQuery, "@"):
		return bad("the URL has a # or a @ where none can be; %s", escaped)
	case u.Opaque != "":
		return bad("the URL has no // behind its scheme; %s", like)
	case strings.Contains(u.Host, ","):
		return bad("the URL names several hosts at once; further ones are parameters: ?addr=host2:6379&addr=host3:6379")
	}
	if err := checkParameters(u, q); err != nil {
		return err
	}
	if u.Scheme == "unix" {
		if u.Host != "" || len(u.Path) < 2 {
			return bad("the URL of a socket must be like unix:///path/to/socket")
		}
		return nil
	}
	if path := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/"); path != "" {
		if !isDatabase(path) {
			return bad("the path of the URL must be the number of a database; %s", like)
		}
		if q.Has("db") && q.Get("db") != path {
			return bad("the URL names one database by its path and another by db; leave one of them out")
		}
	}
	return nil
}

func isDatabase(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0
}

// addresses returns the servers or Sentinels that a URL names; nil for a socket.
func addresses(u *url.URL, q url.Values) ([]string, error) {
	if u.Scheme == "unix" {
		return nil, nil
	}
	port := redisPort
	if q.Has("master_set") {
		port = sentinelPort
	}
	host := u.Hostname()
	if host == "" {
		host = "localhost"
	}
	if strings.HasSuffix(u.Host, ":") {
		return nil, bad("the URL has no port behind the : of its host; %s", like)
	}
	first := u.Port()
	if first == "" {
		first = port
	} else if !isPort(first) {
		return nil, bad("the port of the URL must be from 1 to 65535; %s", like)
	}
	addrs := []string{net.JoinHostPort(host, first)}
	if _, _, err := net.SplitHostPort(addrs[0]); err != nil {
		return nil, bad("the host of the URL must be a name or an address; %s, or redis://[::1]:6379 for IPv6", like)
	}
	for _, addr := range q["addr"] {
		host, own, err := net.SplitHostPort(addr)
		if err != nil { // it may have no port
			host, own, err = net.SplitHostPort(addr + ":" + port)
		}
		if err != nil || host == "" || !isPort(own) {
			return nil, bad("addr is %.100q; it must be host:port, or [address]:port for IPv6", addr)
		}
		addrs = append(addrs, net.JoinHostPort(host, own))
	}
	return addrs, nil
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n <= 65535
}
