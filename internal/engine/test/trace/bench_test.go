package trace_test

import (
	"context"
	"testing"

	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
)

// What the hooks cost: the allocations of a Lock and Unlock without a Trace, with an empty one,
// and with all hooks of an acquire, a hold and a release.
func BenchmarkTrace(b *testing.B) {
	start := func(ctx context.Context) context.Context { return ctx }
	for what, trace := range map[string]*rlock.Trace{
		"unset": nil,
		"empty": {},
		"full": {
			AcquireStart: func(ctx context.Context, _ locktrace.AcquireStart) context.Context { return start(ctx) },
			AcquireEnd:   func(context.Context, locktrace.AcquireEnd) {},
			HoldStart:    func(ctx context.Context, _ locktrace.HoldStart) context.Context { return start(ctx) },
			HoldEnd:      func(context.Context, locktrace.HoldEnd) {},
			ReleaseStart: func(ctx context.Context, _ locktrace.ReleaseStart) context.Context { return start(ctx) },
			ReleaseEnd:   func(context.Context, locktrace.ReleaseEnd) {},
		},
	} {
		b.Run(what, func(b *testing.B) {
			s := redistest.Real(b)
			ses, err := rlock.Dial(context.Background(), s.Option(), rlock.Config{Trace: trace})
			if err != nil {
				b.Fatal(err)
			}
			defer ses.Close()
			m := rlock.New(ses, "x")
			b.ReportAllocs()
			for b.Loop() {
				_, h, err := m.Lock(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				if err := h.Unlock(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
