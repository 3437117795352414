package rlock

import "relock/locktrace"

// Trace is a set of hooks for metrics, tracing and tests. Any of them may be nil. Package
// relock/locktrace says when each is called, and has their events; module relock/otel makes one
// for OpenTelemetry.
type Trace = locktrace.Trace
