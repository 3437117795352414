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
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("metrics on http://%s/metrics\n", l.Addr())
	option := rueidis.ClientOption{InitAddress: []string{*redis}}
	if err := run(ctx, option, rlock.Config{Lease: rlock.DefaultLease}, l); err != nil {
		log.Fatal(err)
	}
}

// run works with locks on the Redis of option, and serves the metrics on l, which it closes.
func run(ctx context.Context, option rueidis.ClientOption, config rlock.Config, l net.Listener) error {
	trace, metrics, err := instrument()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	config.Trace = trace
	session, err := rlock.Dial(ctx, option, config)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: metrics, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	work(ctx, session, 10*config.Lease)
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

// work has goroutines contend for a few locks until ctx ends. Another one holds a lock for
// long at a time, so that it is renewed.
func work(ctx context.Context, session *rlock.Session, long time.Duration) {
	jobs, catalogue := rlock.New(session, "example:jobs"), rwlock.New(session, "example:catalogue")
	report := rlock.New(session, "example:report")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				note(ctx, jobs.Do(ctx, pretend, rlock.Wait(time.Second)))
				note(ctx, catalogue.RDo(ctx, pretend, rlock.Wait(time.Second)))
				note(ctx, catalogue.Do(ctx, pretend, rlock.Wait(time.Second)))
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			note(ctx, report.Do(ctx, func(ctx context.Context) error { return pause(ctx, long) }, rlock.Wait(time.Second)))
		}
	})
	wg.Wait()
}

// note logs what went wrong, as long as the program has not been told to end.
func note(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil || errors.Is(err, rlock.ErrNotAcquired) && !errors.Is(err, rlock.ErrUnavailable) {
		return
	}
	log.Print(err)
	_ = pause(ctx, 100*time.Millisecond) // a Redis that is away answers at once
}

// pretend is a critical section of some milliseconds.
func pretend(ctx context.Context) error {
	return pause(ctx, time.Duration(rand.IntN(20))*time.Millisecond)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
