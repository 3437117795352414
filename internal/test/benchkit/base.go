package benchkit

import (
	"cmp"
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

// ofConnections are the commands that set up connections and keep them alive, and those by which
// the server is asked about itself.
var ofConnections = []string{"auth", "client", "command", "config", "hello", "info", "ping", "script", "select"}

// Counts returns how many commands the server has run since it began: those whose names are among
// sends, and all but those of connections. What scripts call is counted too, so only names that no
// script calls make sense among sends.
func (b *Base) Counts(ctx context.Context, sends []string) (sent, ran int, err error) {
	fields, err := b.info(ctx, "commandstats")
	if err != nil {
		return 0, 0, err
	}
	for field, stats := range fields {
		name, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		calls, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
		n, err := strconv.Atoi(calls)
		if err != nil {
			return 0, 0, fmt.Errorf("benchkit: INFO commandstats: %s: %q: %w", name, stats, err)
		}
		command, _, _ := strings.Cut(name, "|")
		switch {
		case slices.Contains(sends, name):
			sent += n
			ran += n
		case !slices.Contains(ofConnections, command):
			ran += n
		}
	}
	return sent, ran, nil
}

// CPU returns the time that the server says its processor has spent on it.
func (b *Base) CPU(ctx context.Context) (sum time.Duration, err error) {
	fields, err := b.info(ctx, "cpu")
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, bad := strconv.ParseFloat(fields[name], 64)
		if err == nil && bad != nil {
			err = fmt.Errorf("benchkit: INFO cpu: %s: %w", name, bad)
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum, err
}

// Version returns what the server says it is.
func (b *Base) Version(ctx context.Context) (string, error) {
	fields, err := b.info(ctx, "server")
	return cmp.Or(fields["redis_version"], "unknown"), err
}

// info returns the fields of one section of INFO.
func (b *Base) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := b.client.Do(ctx, b.client.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return nil, fmt.Errorf("benchkit: INFO %s: %w", section, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
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
