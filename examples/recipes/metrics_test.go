package recipes_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"relock/locktrace"
	"relock/relocktest"
	"relock/rlock"
)

// Numbers for a metrics library, from the hooks of a session.
func Example_metrics() {
	_, redis, done := relocktest.Open()
	defer done()
	ctx, option := context.Background(), redis.Option()

	var lost, held atomic.Int64
	trace := &rlock.Trace{
		HoldStart: func(ctx context.Context, _ locktrace.HoldStart) context.Context {
			held.Add(1)
			return ctx
		},
		HoldEnd: func(_ context.Context, e locktrace.HoldEnd) {
			held.Add(-1)
			if e.Reason == locktrace.HoldLost {
				lost.Add(1)
			}
		},
	}
	session, err := rlock.Dial(ctx, option, rlock.Config{Trace: trace, Logger: slog.Default()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	err = rlock.New(session, "report").Do(ctx, func(context.Context) error {
		fmt.Println("held:", held.Load())
		return nil
	})
	fmt.Println("held:", held.Load(), "lost:", lost.Load(), err)
	// Output:
	// held: 1
	// held: 0 lost: 0 <nil>
}
