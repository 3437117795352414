package rlock

import "relock/locktrace"

// Trace is a set of hooks for metrics, tracing and tests, each of which may be nil: see package
// relock/locktrace, and module relock/otel for OpenTelemetry.
type Trace = locktrace.Trace
