package lockopt_test

import (
	"errors"
	"testing"
	"time"

	"relock/internal/backoff"
	"relock/internal/lockerr"
	"relock/internal/lockopt"
)

func TestOptionsAddUp(t *testing.T) {
	o, err := lockopt.Collect([]lockopt.Option{
		lockopt.Wait(time.Second), lockopt.Lease(time.Minute), lockopt.Retry(backoff.Linear(time.Second)), lockopt.Keeps(t.Context()),
		lockopt.Wait(0), // the last of two counts
	})
	if err != nil || !o.Bounded || o.Wait != 0 || o.Lease != time.Minute || o.Retry == nil || o.Keeps != t.Context() {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := lockopt.Collect(nil); err != nil || o.Bounded || o.Lease != 0 || o.Retry != nil {
		t.Errorf("without options: %+v, %v", o, err)
	}
}

// The text names what is wrong with the first bad option, and what would do.
func TestFirstBadOptionIsTold(t *testing.T) {
	for want, opts := range map[string][]lockopt.Option{
		"rlock: bad argument: a nil LockOption":                                                    {lockopt.Wait(1), nil},
		"rlock: bad argument: Wait(-1ns); it must be 0 (do not wait) or positive":                  {lockopt.Wait(-1), lockopt.Lease(0)},
		"rlock: bad argument: Lease(0s); it must be at least 1ms and at most 876000h0m0s":          {lockopt.Lease(0), lockopt.Wait(-1)},
		"rlock: bad argument: Lease(876000h0m1s); it must be at least 1ms and at most 876000h0m0s": {lockopt.Lease(lockopt.Longest + time.Second)},
		"rlock: bad argument: Retry(nil); name a Backoff, as Linear(50*time.Millisecond)":          {lockopt.Retry(nil)},
	} {
		o, err := lockopt.Collect(opts)
		if !errors.Is(err, lockerr.ErrArgument) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if o.Bounded || o.Lease != 0 || o.Retry != nil {
			t.Errorf("bad options say %+v", o)
		}
	}
}
