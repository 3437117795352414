package benchkit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// Option returns the client options that locks on rueidis run best with.
func Option(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress: []string{addr}, ForceSingleClient: true,
		AlwaysPipelining: true, PipelineMultiplex: -1, DisableCache: true,
	}
}

// compareAndDelete is what any lock's release has to do at least.
var compareAndDelete = rueidis.NewLuaScript(
	`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

// Pair is what any lock on Redis has to pay for one round: SET NX PX and
// compare-and-delete, one after the other.
func Pair(ctx context.Context, c rueidis.Client, key string) error {
	err := c.Do(ctx, c.B().Set().Key(key).Value("me").Nx().PxMilliseconds(30000).Build()).Error()
	if err != nil {
		return err
	}
	return compareAndDelete.Exec(ctx, c, []string{key}, []string{"me"}).Error()
}

// Base is what no lock on this server can beat. It keeps a client of its own.
type Base struct{ client rueidis.Client }

// NewBase connects to the server.
func NewBase(addr string) (*Base, error) {
	c, err := rueidis.NewClient(Option(addr))
	if err != nil {
		return nil, fmt.Errorf("benchkit: base: %w", err)
	}
	return &Base{c}, nil
}

// Close closes the client.
func (b *Base) Close() { b.client.Close() }

// Floor returns how many pairs a second one goroutine does, one after the other: what a lock
// that goes through Redis at each hand-over, without waiting for a message, could do at
// most. It runs for d.
func (b *Base) Floor(ctx context.Context, d time.Duration) (float64, error) {
	return b.rate(ctx, d, 1)
}

// Ceiling returns how many pairs a second that many goroutines do together, a key each. It
// runs for d.
func (b *Base) Ceiling(ctx context.Context, d time.Duration, goroutines int) (float64, error) {
	return b.rate(ctx, d, goroutines)
}

// Sent returns how often the server has run the commands with those names since it began.
// What scripts call is counted too, so only names that no script calls make sense.
func (b *Base) Sent(ctx context.Context, names []string) (int, error) {
	text, err := b.client.Do(ctx, b.client.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		return 0, fmt.Errorf("benchkit: INFO commandstats: %w", err)
	}
	sum := 0
	for line := range strings.Lines(text) {
		name, stats, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !slices.Contains(names, name) {
			continue
		}
		calls, _, _ := strings.Cut(stats, ",")
		n, err := strconv.Atoi(calls)
		if err != nil {
			return 0, fmt.Errorf("benchkit: INFO commandstats: %q: %w", line, err)
		}
		sum += n
	}
	return sum, nil
}

// Version returns what the server says it is.
func (b *Base) Version(ctx context.Context) (string, error) {
	text, err := b.client.Do(ctx, b.client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return "", fmt.Errorf("benchkit: INFO server: %w", err)
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return strings.TrimSpace(v), nil
		}
	}
	return "unknown", nil
}

func (b *Base) rate(ctx context.Context, d time.Duration, goroutines int) (float64, error) {
	var pairs atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for i := range goroutines {
		wg.Go(func() {
			key := fmt.Sprint("base-", i)
			for time.Since(began) < d {
				if err := Pair(ctx, b.client, key); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				pairs.Add(1)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, fmt.Errorf("benchkit: base: %w", *err)
	}
	return float64(pairs.Load()) / time.Since(began).Seconds(), nil
}
