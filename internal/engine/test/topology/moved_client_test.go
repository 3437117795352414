package topology_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// A server of a client that is not the session's own answers once, or several times in a row, that it
// loads its data. Then the client's connection breaks, and the next one leads to another server: the
// subscriptions follow, though theirs is still open.
func TestSubscriptionsOfAGivenClientFollowAfterLoading(t *testing.T) {
	for _, refusals := range []int{1, 3} {
		t.Run(strconv.Itoa(refusals), func(t *testing.T) {
			redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
				old, next := faulttest.New(t, s.Addr), faulttest.New(t, s.Addr)
				var to movedName
				to.leads(old.Option(s.Option()))
				var mu sync.Mutex
				var first net.Conn // the commands'; the later ones are the subscriptions'
				client := s.Client(t, func(opt *rueidis.ClientOption) {
					dial := to.option(s).DialCtxFn
					opt.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
						conn, err := dial(ctx, addr, d, tc)
						mu.Lock()
						defer mu.Unlock()
						if first == nil {
							first = conn
						}
						return conn, err
					}
				})
				ses, err := rlock.NewSession(t.Context(), client, rlock.Config{Lease: time.Hour}) // a renewal would find out
				must(t, err)
				t.Cleanup(func() { _ = ses.Close() })
				ctx, name := within(t, locktest.Patience), redistest.Name(t)
				old.RefuseCommand("EVALSHA", "LOADING Redis is loading the dataset in memory")
				old.Reset()
				for range refusals {
					if _, _, err := rlock.New(ses, name).TryLock(ctx); !errors.Is(err, rlock.ErrUnavailable) {
						t.Fatal(err)
					}
				}
				to.leads(next.Option(s.Option()))
				mu.Lock()
				_ = first.Close()
				mu.Unlock()
				redistest.Eventually(t, locktest.Patience, "the client connects anew", func() bool {
					return client.Do(ctx, client.B().Ping().Build()).Error() == nil && next.Count("PING", "HELLO") > 0
				})
				_, h, err := rlock.New(ses, name).Lock(ctx)
				must(t, err)
				redistest.Eventually(t, locktest.Patience, "it listens at the new server", func() bool { return next.Count("SUBSCRIBE") > 0 })
				must(t, h.Unlock())
				if n := old.Count("SUBSCRIBE"); n != 0 {
					t.Errorf("subscribed anew %d times at the server that loads", n)
				}
			})
		})
	}
}
