package redisson

import (
	"strconv"
	"strings"
	"time"
)

// ms is a duration for Java.
func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// field returns what stands behind a key in the answer of INFO.
func field(info, key string) string {
	_, rest, _ := strings.Cut(info, key)
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}
