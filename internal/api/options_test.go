package api_test

import (
	"errors"
	"testing"
	"time"

	"relock/internal/api"
	"relock/internal/clock"
)

func TestOptionsAddUp(t *testing.T) {
	o, err := api.Collect([]api.Option{
		api.Wait(time.Second), api.Lease(time.Minute), api.Retry(clock.Linear(time.Second)), api.Keeps(t.Context()),
		api.Wait(0), // the last of two counts
	})
	if err != nil || !o.Bounded || o.Wait != 0 || o.Lease != time.Minute || o.Retry == nil || o.Keeps != t.Context() {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := api.Collect(nil); err != nil || o.Bounded || o.Lease != 0 || o.Retry != nil {
		t.Errorf("without options: %+v, %v", o, err)
	}
}

// The text names what is wrong with the first bad option, and what would do.
func TestFirstBadOptionIsTold(t *testing.T) {
	for want, opts := range map[string][]api.Option{
		"rlock: bad argument: a nil LockOption":                                                    {api.Wait(1), nil},
		"rlock: bad argument: Wait(-1ns); it must be 0 (do not wait) or positive":                  {api.Wait(-1), api.Lease(0)},
		"rlock: bad argument: Lease(0s); it must be at least 1ms and at most 876000h0m0s":          {api.Lease(0), api.Wait(-1)},
		"rlock: bad argument: Lease(876000h0m1s); it must be at least 1ms and at most 876000h0m0s": {api.Lease(api.Longest + time.Second)},
		"rlock: bad argument: Retry(nil); name a Backoff, as Linear(50*time.Millisecond)":          {api.Retry(nil)},
	} {
		o, err := api.Collect(opts)
		if !errors.Is(err, api.ErrArgument) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if o.Bounded || o.Lease != 0 || o.Retry != nil {
			t.Errorf("bad options say %+v", o)
		}
	}
}
