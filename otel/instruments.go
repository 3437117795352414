package otel

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// instruments are what is recorded; the package documentation describes them.
type instruments struct {
	acquiring, holding, releasing, renewing metric.Float64Histogram

	acquires, attempts, lost, renewals, events, lines, keeps metric.Int64Counter

	waiters, holds, connections, kept metric.Int64UpDownCounter
}

// buckets reach from a round trip in a data centre to a long job, in seconds.
var buckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs []error
	histogram := func(name, description string) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	gauge := func(name, unit, description string) metric.Int64UpDownCounter {
		g, err := m.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	i = instruments{
		acquiring:   histogram("relock.acquire.duration", "Time from the call of Lock to its return, with or without the lock."),
		holding:     histogram("relock.hold.duration", "Time from the beginning of a hold to its end."),
		releasing:   histogram("relock.release.duration", "Round trip of an Unlock that had to ask Redis."),
		renewing:    histogram("relock.renewal.duration", "Round trip of a batch of renewals."),
		acquires:    counter("relock.acquires", "{call}", "Calls that wanted a lock."),
		attempts:    counter("relock.attempts", "{attempt}", "Acquire scripts that Redis answered, or did not."),
		lost:        counter("relock.hold.lost", "{hold}", "Holds that were lost."),
		renewals:    counter("relock.renewals", "{claim}", "Claims whose renewal was answered, or was not."),
		events:      counter("relock.subscription.events", "{event}", "Changes of state of subscriptions."),
		lines:       counter("relock.line.events", "{event}", "Messages to sessions that stand in the line of a lock."),
		keeps:       counter("relock.keep.events", "{event}", "Changes of locks that a session keeps, or may keep."),
		kept:        gauge("relock.keep.locks", "{lock}", "Locks that are kept now, without a hold."),
		waiters:     gauge("relock.waiters", "{caller}", "Callers that wait for a release now."),
		holds:       gauge("relock.holds", "{hold}", "Holds that stand now."),
		connections: gauge("relock.subscription.connections", "{connection}", "Connections that listen now."),
	}
	return i, errors.Join(errs...)
}
