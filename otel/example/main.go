// Command example holds locks at work and serves their metrics on /metrics, for Prometheus.
//
//	go run . -redis 127.0.0.1:6379 -listen :2112
//
// dashboard.json beside it is for Grafana, alerts.yaml for Prometheus.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/rueidis"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"relock/otel"
	"relock/rlock"
	"relock/rwlock"
)

func main() {
	redis := flag.String("redis", "127.0.0.1:6379", "address of Redis")
	listen := flag.String("listen", "127.0.0.1:2112", "where to serve /metrics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *redis, *listen); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, redis, listen string) error {
	trace, metrics, err := instrument()
	if err != nil {
		return err
	}
	session, err := rlock.Dial(ctx, rueidis.ClientOption{InitAddress: []string{redis}}, rlock.Config{Trace: trace})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(err, session.Close())
	}
	server := &http.Server{Handler: metrics, ReadHeaderTimeout: 5 * time.Second}
	fmt.Printf("metrics on http://%s/metrics\n", l.Addr())
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	work(ctx, session)
	err = errors.Join(session.Close(), server.Close())
	<-served
	return err
}

// instrument returns the hooks for a session, and the handler that serves what they record.
func instrument() (*rlock.Trace, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return nil, nil, err
	}
	trace, err := otel.New(otel.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return trace, mux, nil
}

// work has goroutines contend for a few locks until ctx ends.
func work(ctx context.Context, session *rlock.Session) {
	jobs, catalogue := rlock.New(session, "example:jobs"), rwlock.New(session, "example:catalogue")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				for _, do := range []func(context.Context, func(context.Context) error, ...rlock.LockOption) error{jobs.Do, catalogue.RDo, catalogue.Do} {
					err := do(ctx, pretend, rlock.Wait(time.Second))
					if err != nil && ctx.Err() == nil && !errors.Is(err, rlock.ErrNotAcquired) {
						log.Print(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

// pretend is a critical section of some milliseconds.
func pretend(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(rand.IntN(20)) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
