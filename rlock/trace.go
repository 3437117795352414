package rlock

import "relock/locktrace"

// Trace is a set of hooks for metrics, tracing and tests, each of which may be nil: see package
// relock/locktrace, and module relock/otel for OpenTelemetry. The hook Line is told what other sessions say
// to one that stands in the line of a [Mutex]: that it has the lock, or when it may ask for it.
// AcquireEnd.Grant is locktrace.GrantLine for a lock that came so.
type Trace = locktrace.Trace
