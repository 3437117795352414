//go:build !linux

package slownet

import "time"

func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }
