package connect_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/api"
	"relock/internal/connect"
	"relock/internal/test/redistest"
)

// said is what a test looks at of the options of a URL.
func said(o rueidis.ClientOption) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s/%s db%d", o.InitAddress, o.Username, o.Password, o.SelectDB)
	if o.TLSConfig != nil {
		fmt.Fprintf(&b, " tls %q skip %v", o.TLSConfig.ServerName, o.TLSConfig.InsecureSkipVerify)
	}
	if s := o.Sentinel; s.MasterSet != "" {
		fmt.Fprintf(&b, " sentinel %s %s/%s tls %v", s.MasterSet, s.Username, s.Password, s.TLSConfig != nil)
	}
	fmt.Fprintf(&b, " %v %v %q resp2 %v cache %v retry %v", o.Dialer.Timeout, o.ConnWriteTimeout, o.ClientName, o.AlwaysRESP2, !o.DisableCache, !o.DisableRetry)
	return strings.TrimSuffix(b.String(), ` 0s 0s "" resp2 false cache true retry true`)
}

func TestParse(t *testing.T) {
	for raw, want := range map[string]string{
		"redis://host:6380":                             "[host:6380] / db0",
		"redis://host":                                  "[host:6379] / db0",
		"redis://":                                      "[localhost:6379] / db0",
		"redis://:6380":                                 "[localhost:6380] / db0",
		"REDIS://host/":                                 "[host:6379] / db0",
		"valkey://host/3/":                              "[host:6379] / db3",
		"redis://host/3?db=3":                           "[host:6379] / db3",
		"redis://host?db=4":                             "[host:6379] / db4",
		"redis://[::1]":                                 "[[::1]:6379] / db0",
		"redis://[::1]:6380?addr=[::2]:1":               "[[::1]:6380 [::2]:1] / db0",
		"redis://host?addr=two&addr=[::2]":              "[host:6379 two:6379 [::2]:6379] / db0",
		"redis://me:p%40ss%2F%25%3A@host":               "[host:6379] me/p@ss/%: db0",
		"redis://:pa:ss@host":                           "[host:6379] /pa:ss db0",
		"redis://me@host":                               "[host:6379] me/ db0",
		"rediss://host:6380":                            `[host:6380] / db0 tls "host" skip false`,
		"valkeys://host?skip_verify":                    `[host:6379] / db0 tls "host" skip true`,
		"rediss://host?skip_verify=0":                   `[host:6379] / db0 tls "host" skip false`,
		"rediss://[::1]?server_name=redis.test":         `[[::1]:6379] / db0 tls "redis.test" skip false`,
		"rediss://host?server_name=":                    `[host:6379] / db0 tls "" skip false`,
		"redis://me:secret@one?addr=two:1&master_set=m": "[one:26379 two:1] me/secret db0 sentinel m / tls false",
		"redis://one:1?master_set=m&sentinel_username=u&sentinel_password=p%26": "[one:1] / db0 sentinel m u/p& tls false",
		"rediss://one?master_set=m":                                       `[one:26379] / db0 tls "one" skip false sentinel m / tls true`,
		"rediss://one?master_set=m&sentinel_tls=false":                    `[one:26379] / db0 tls "one" skip false sentinel m / tls false`,
		"redis://host?dial_timeout=2s&write_timeout=3s&client_name=a%20b": `[host:6379] / db0 2s 3s "a b" resp2 false cache true retry true`,
		"redis://host?protocol=2&client_cache=0&max_retries=0":            `[host:6379] / db0 0s 0s "" resp2 true cache false retry false`,
		"redis://host?protocol=3&client_cache=1&max_retries=3":            "[host:6379] / db0",
		"unix:///run/redis@1.sock":                                        "[/run/redis@1.sock] / db0",
		"unix://me:secret@/run/redis.sock?db=2":                           "[/run/redis.sock] me/secret db2",
	} {
		opt, err := connect.ParseURL(raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
		} else if got := said(opt); got != want {
			t.Errorf("%s:\n%s, want\n%s", raw, got, want)
		}
		if sock := strings.HasPrefix(raw, "unix"); sock != (opt.DialCtxFn != nil) {
			t.Errorf("%s: has a dial function: %v", raw, !sock)
		}
	}
}

const percent = "@ is %40, / is %2F"

// refused are URLs, and what is said of them.
var refused = map[string]string{
	"":                                             "must begin with redis://",
	"nonsense":                                     "must begin with redis://",
	"localhost:6379":                               "must begin with redis://",
	"127.0.0.1:6379":                               "redis://user:password@host:6379/0",
	"http://host":                                  "must begin with redis://",
	"sentinel://host/mymaster":                     "also for Sentinels",
	"redis:host":                                   "no // behind its scheme",
	"redis:/host":                                  "number of a database",
	"redis://host:":                                "no port behind the :",
	"redis://ho]st":                                "a name or an address",
	"redis://host:0":                               "from 1 to 65535",
	"redis://host:65536":                           "from 1 to 65535",
	"redis://host:port":                            "cannot be read",
	"redis://one:1,two:2":                          "?addr=host2:6379",
	"redis://one,two":                              "?addr=host2:6379",
	"redis://host/db":                              "number of a database",
	"redis://host/-1":                              "number of a database",
	"redis://host/1/2":                             "number of a database",
	"redis://host//2":                              "number of a database",
	"redis://host/1?db=2":                          "leave one of them out",
	"redis://host?db=-1":                           "number of a database",
	"redis://host?db=":                             "number of a database",
	"redis://host?db=1&db=1":                       "once is enough",
	"redis://host?addr=":                           "host:port",
	"redis://host?addr=:1":                         "host:port",
	"redis://host?addr=two:":                       "host:port",
	"redis://host?addr=two:x":                      "host:port",
	"redis://host?addr=::1":                        "[address]:port",
	"redis://host?addr=redis://two:1":              "host:port",
	"redis://host?dial_timeout=2":                  "a time like 2s",
	"redis://host?write_timeout=-2s":               "a time like 2s",
	"redis://host?protocol=1":                      "2 or 3",
	"redis://host?client_cache=no":                 "0 or 1",
	"redis://host?max_retries=x":                   "a number",
	"redis://host?master_set=":                     "know the primary",
	"redis://host?mastr_set=m":                     "not known; there are addr, ",
	"redis://host?sentinel_username=u":             "needs master_set",
	"redis://host?skip_verify=true":                "is for rediss://",
	"redis://host?cacert=ca.pem":                   "is for rediss://",
	"rediss://host?skip_verify=maybe":              "true or false",
	"rediss://host?sentinel_tls=true":              "needs master_set",
	"rediss://host?cacert=/no/such/file":           "no such file",
	"rediss://host?cert=c":                         "both are needed",
	"rediss://host?cert=/no/c&key=/no/k":           "cert and key: ",
	"redis://host?a=1;b=2":                         "parameters of the URL cannot be read",
	"redis://host?master_set=m%2":                  "parameters of the URL cannot be read",
	"unix://run/redis.sock":                        "unix:///path/to/socket",
	"unix://":                                      "unix:///path/to/socket",
	"unix:///s?addr=host:1":                        "not for unix://",
	"unix:///s?master_set=m":                       "not for unix://",
	"unix:///s?cacert=c":                           "is for rediss://",
	"redis://host?master_set=m&sentinel_password=": "sentinel_password must be given",
	// Passwords with characters that end what they stand in.
	"redis://:se/cret@host":   percent,
	"redis://:1/secret@host":  percent,
	"redis://:1?secret@host":  percent,
	"redis://:1#secret@host":  percent,
	"redis://:1?db=se@host":   percent,
	"redis://:s%secret@host":  percent,
	"redis://:a@b?secret@c":   percent,
	"redis://host#secret":     percent,
	"redis://me:se cret@host": percent,
	"unix://:1/secret@/sock":  "unix:///path/to/socket",
}

// A URL that is none, or that means something else than it seems to, is ErrConfig with what would be right.
func TestParseRefuses(t *testing.T) {
	for raw, want := range refused {
		opt, err := connect.ParseURL(raw)
		if !errors.Is(err, api.ErrConfig) || !strings.Contains(fmt.Sprint(err), want) || strings.Contains(fmt.Sprint(err), "cret") {
			t.Errorf("%s: %v (%s), want ErrConfig and %q", raw, err, said(opt), want)
		}
	}
}

// Certificates come from files.
func TestParseCertificates(t *testing.T) {
	ca, cert, key := redistest.NewAuthority(t).Files(t)
	q := url.Values{"cacert": {ca}, "cert": {cert}, "key": {key}, "master_set": {"m"}}
	opt, err := connect.ParseURL("rediss://host?" + q.Encode())
	if err != nil || opt.TLSConfig.RootCAs == nil || len(opt.TLSConfig.Certificates) != 1 || opt.Sentinel.TLSConfig != opt.TLSConfig || opt.TLSConfig.MinVersion != tls.VersionTLS12 {
		t.Errorf("%+v, %v", opt.TLSConfig, err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, q := range map[string]url.Values{
		"has no certificate in PEM": {"cacert": {empty}},
		"cert and key: ":            {"cert": {cert}, "key": {ca}},
	} {
		if _, err := connect.ParseURL("rediss://host?" + q.Encode()); !errors.Is(err, api.ErrConfig) || !strings.Contains(err.Error(), what) {
			t.Errorf("%v: %v", q, err)
		}
	}
}

// A socket is dialled as one.
func TestParseSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	opt, err := connect.ParseURL("unix://" + path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, err := opt.DialCtxFn(ctx, opt.InitAddress[0], &opt.Dialer, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// Whatever a URL has in it, it gives addresses that can be dialled, or an error that repeats nothing of a
// password.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "a", "p@ss", "se/cret", "1#x", "1?x=y", "%", "[::1]", "x:y", "?master_set=m&sentinel_password=", "/0?db="} {
		for _, at := range []string{"host:1", "", "/", "[::1]:7", "host/0?db=0", "host?addr=x"} {
			f.Add("redis", seed, at)
			f.Add("rediss", seed, at)
			f.Add("unix", seed, at)
		}
	}
	f.Fuzz(func(t *testing.T, scheme, password, at string) {
		const mark = "zq7secret7qz"
		raw := scheme + "://me:" + password + mark + "@" + at
		opt, err := connect.ParseURL(raw)
		if err == nil {
			if len(opt.InitAddress) == 0 {
				t.Errorf("%q: no address", raw)
			}
			for _, addr := range opt.InitAddress {
				if _, port, err := net.SplitHostPort(addr); opt.DialCtxFn == nil && (err != nil || port == "") {
					t.Errorf("%q: the address %q", raw, addr)
				}
			}
			if !strings.Contains(opt.Password, mark) {
				t.Errorf("%q: the password is taken for something else: %s", raw, said(opt))
			}
			return
		}
		if !errors.Is(err, api.ErrConfig) || strings.Contains(err.Error(), mark) {
			t.Errorf("%q: %v", raw, err)
		}
		if !slices.Contains([]string{"redis", "rediss", "valkey", "valkeys", "unix"}, strings.ToLower(scheme)) && !strings.Contains(err.Error(), "redis://") {
			t.Errorf("%q: %v", raw, err)
		}
	})
}
