package relocktest_test

import (
	"context"
	"errors"
	"fmt"

	"relock/relocktest"
	"relock/rlock"
)

// Reports is application code: it depends on the interface, so that its tests need no Redis.
type Reports struct{ lock relocktest.Doer }

// Run writes the report unless another process is at it.
func (r Reports) Run(ctx context.Context) (string, error) {
	written := "no"
	err := r.lock.Do(ctx, func(context.Context) error { written = "yes"; return nil }, rlock.Wait(0))
	if errors.Is(err, rlock.ErrNotAcquired) {
		return "another process writes it", nil
	}
	return written, err
}

func ExampleFake() {
	var lock relocktest.Fake
	reports := Reports{lock: &lock}

	fmt.Println(reports.Run(context.Background()))
	lock.Refuse(rlock.ErrNotAcquired)
	fmt.Println(reports.Run(context.Background()))
	// Output:
	// yes <nil>
	// another process writes it <nil>
}
