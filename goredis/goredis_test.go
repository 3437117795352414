package goredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"
	"github.com/redis/rueidis"

	"relock/goredis"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m, "../rlock/lua") }

var must = locktest.Must

// shared is a TLS configuration, of which Options makes no copy.
var shared = &tls.Config{ServerName: "redis.test"}

// Each field on its own makes these options, beside the default address.
var fields = map[string]struct {
	set  func(o *redis.UniversalOptions)
	want func(o *rueidis.ClientOption)
}{
	"Addrs": {func(o *redis.UniversalOptions) { o.Addrs = []string{"a:1", "b:2"} },
		func(o *rueidis.ClientOption) { o.InitAddress = []string{"a:1", "b:2"} }},
	"ClientName": {func(o *redis.UniversalOptions) { o.ClientName = "n" }, func(o *rueidis.ClientOption) { o.ClientName = "n" }},
	"DB":         {func(o *redis.UniversalOptions) { o.DB = 3 }, func(o *rueidis.ClientOption) { o.SelectDB = 3 }},
	"Protocol":   {func(o *redis.UniversalOptions) { o.Protocol = 2 }, func(o *rueidis.ClientOption) { o.AlwaysRESP2 = true }},
	"Username": {func(o *redis.UniversalOptions) { o.Username, o.Password = "u", "p" },
		func(o *rueidis.ClientOption) { o.Username, o.Password = "u", "p" }},
	"Password": {func(o *redis.UniversalOptions) { o.Password = "p" }, func(o *rueidis.ClientOption) { o.Password = "p" }},
	"SentinelUsername": {func(o *redis.UniversalOptions) { o.SentinelUsername, o.SentinelPassword = "u", "p" },
		func(o *rueidis.ClientOption) { o.Sentinel.Username, o.Sentinel.Password = "u", "p" }},
	"SentinelPassword": {func(o *redis.UniversalOptions) { o.SentinelPassword = "p" }, func(o *rueidis.ClientOption) { o.Sentinel.Password = "p" }},
	"MasterName": {func(o *redis.UniversalOptions) { o.MasterName = "m" }, func(o *rueidis.ClientOption) {
		o.Sentinel.MasterSet, o.InitAddress = "m", (&redis.UniversalOptions{MasterName: "m"}).Failover().SentinelAddrs
	}},
	"DialTimeout": {func(o *redis.UniversalOptions) { o.DialTimeout = time.Second },
		func(o *rueidis.ClientOption) { o.Dialer.Timeout, o.Sentinel.Dialer.Timeout = time.Second, time.Second }},
	"ReadTimeout":     {func(o *redis.UniversalOptions) { o.ReadTimeout = 2 * time.Second }, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = 2 * time.Second }},
	"WriteTimeout":    {func(o *redis.UniversalOptions) { o.WriteTimeout, o.ReadTimeout = 2*time.Second, -1 }, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = 2 * time.Second }},
	"ReadBufferSize":  {func(o *redis.UniversalOptions) { o.ReadBufferSize = 4096 }, func(o *rueidis.ClientOption) { o.ReadBufferEachConn = 4096 }},
	"WriteBufferSize": {func(o *redis.UniversalOptions) { o.WriteBufferSize = 4096 }, func(o *rueidis.ClientOption) { o.WriteBufferEachConn = 4096 }},
	"TLSConfig":       {func(o *redis.UniversalOptions) { o.TLSConfig = shared }, func(o *rueidis.ClientOption) { o.TLSConfig = shared }},
	"DisableIdentity": {func(o *redis.UniversalOptions) { o.DisableIdentity = true }, func(o *rueidis.ClientOption) { o.ClientSetInfo = rueidis.DisableClientSetInfo }},
	//lint:ignore SA1019 applications may still set it
	"DisableIndentity": {func(o *redis.UniversalOptions) { o.DisableIndentity = true }, func(o *rueidis.ClientOption) { o.ClientSetInfo = rueidis.DisableClientSetInfo }},
	"IsClusterMode":    {func(o *redis.UniversalOptions) { o.IsClusterMode, o.DB = true, 3 }, func(*rueidis.ClientOption) {}},
}

// These are functions, which the tests below call, or are refused.
var functions = []string{"Dialer", "OnConnect", "CredentialsProvider", "CredentialsProviderContext", "StreamingCredentialsProvider"}

// These have no effect, as the documentation of Options says.
var idle = []string{
	"MaxRetries", "MinRetryBackoff", "MaxRetryBackoff", "DialerRetries", "DialerRetryTimeout", "ContextTimeoutEnabled",
	"PipelineReadBufferSize", "PipelineWriteBufferSize", "PipelinePoolSize", "PoolFIFO", "PoolSize", "MaxConcurrentDials",
	"PoolTimeout", "MinIdleConns", "MaxIdleConns", "MaxActiveConns", "ConnMaxIdleTime", "ConnMaxLifetime", "ConnMaxLifetimeJitter",
	"MaxRedirects", "ReadOnly", "RouteByLatency", "RouteByLatencyTolerance", "RouteRandomly", "IdentitySuffix",
	"FailingTimeoutSeconds", "UnstableResp3", "PushNotificationProcessor", "AutoPipelineOptions", "MaintNotificationsConfig",
	"ClientSideCacheConfig", "ClientSideCache", "ClientSideCacheStrategy", "ClientSideCacheRefreshOnInvalidate",
	"ClientSideCacheCoalesceMisses", "ClientSideCacheInvalidationBatchWindow",
}

// Every field that go-redis has is converted, refused, or known to have no effect.
func TestEachField(t *testing.T) {
	known := map[string]bool{}
	for _, name := range append(functions, idle...) {
		known[name] = true
	}
	all := reflect.TypeFor[redis.UniversalOptions]()
	for i := range all.NumField() {
		name := all.Field(i).Name
		f, ok := fields[name]
		if !ok {
			if !known[name] {
				t.Errorf("%s: nobody has thought of it", name)
			}
			continue
		}
		var o redis.UniversalOptions
		f.set(&o)
		got, err := goredis.Options(&o)
		want := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}
		f.want(&want)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
	for _, name := range idle {
		var o redis.UniversalOptions
		switch v := reflect.ValueOf(&o).Elem().FieldByName(name); v.Kind() {
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		case reflect.String:
			v.SetString("x")
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		}
		got, err := goredis.Options(&o)
		if want := (rueidis.ClientOption{InitAddress: []string{"127.0.0.1:6379"}}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// Fields that say something together.
func TestTogether(t *testing.T) {
	o := redis.UniversalOptions{Addrs: []string{"a:1", "b:2"}, DB: 3, MasterName: "m", TLSConfig: shared}
	got, err := goredis.Options(&o)
	if err != nil || got.SelectDB != 3 || got.Sentinel.TLSConfig != shared || got.TLSConfig != shared {
		t.Errorf("Sentinels: %+v, %v", got, err)
	}
	got.InitAddress[0] = "changed"
	if o.Addrs[0] != "a:1" {
		t.Error("the addresses are shared")
	}
	// An address that was not set, as one from the environment, is that of go-redis.
	unset, err := goredis.Options(&redis.UniversalOptions{Addrs: []string{""}})
	if err != nil || !reflect.DeepEqual(unset.InitAddress, []string{"127.0.0.1:6379"}) {
		t.Errorf("an empty address: %+v, %v", unset, err)
	}
	o.MasterName = ""
	if got, err := goredis.Options(&o); err != nil || got.SelectDB != 0 {
		t.Errorf("a Cluster has one database: %+v, %v", got, err)
	}
}

// A timeout for writing alone says nothing of how long an answer may take.
func TestTimeouts(t *testing.T) {
	for _, c := range []struct{ read, write, want time.Duration }{
		{0, 0, 0}, {0, time.Second / 5, 0}, {0, time.Minute, time.Minute}, {0, -1, 0}, {-1, -1, 0}, {-2, time.Second, time.Second},
		{time.Second, 0, time.Second}, {time.Second, time.Minute, time.Minute}, {time.Second, time.Second / 5, time.Second},
	} {
		got, err := goredis.Options(&redis.UniversalOptions{ReadTimeout: c.read, WriteTimeout: c.write})
		if err != nil || got.ConnWriteTimeout != c.want {
			t.Errorf("ReadTimeout %v, WriteTimeout %v: %v, %v; want %v", c.read, c.write, got.ConnWriteTimeout, err, c.want)
		}
	}
}

type streaming struct{}

func (streaming) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	return nil, nil, nil
}

func TestRefused(t *testing.T) {
	for what, o := range map[string]*redis.UniversalOptions{
		"nil":                          nil,
		"OnConnect":                    {OnConnect: func(context.Context, *redis.Conn) error { return nil }},
		"StreamingCredentialsProvider": {StreamingCredentialsProvider: streaming{}},
		"Protocol":                     {Protocol: 1},
	} {
		if _, err := goredis.Options(o); !errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
