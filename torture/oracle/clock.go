package oracle

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time since the machine started, on CLOCK_MONOTONIC. All processes of a machine
// read the same clock, and it never goes back, so times of different processes compare.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // the clock exists on every system that the tests run on
	}
	return time.Duration(ts.Nano())
}
