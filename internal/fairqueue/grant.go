package fairqueue

import (
	"strconv"
	"strings"
)

// A Grant is the message of a script that has let a run in.
type Grant struct {
	At       int64 // by Redis's clock, in ms
	Token    int64 // the highest
	Tokens   int   // how many
	Last     int64 // number of the run's last waiter
	Position int64
	Entry    string
	Key      string // of the lock
}

// ParseGrant takes such a message apart: "grant:<the numbers>:<length of entry>:<entry><key>".
// It reports whether the payload is one.
func ParseGrant(payload string) (g Grant, ok bool) {
	rest, ok := strings.CutPrefix(payload, "grant:")
	var n [6]int64
	for i := range n {
		var number string
		var err error
		number, rest, _ = strings.Cut(rest, ":")
		if n[i], err = strconv.ParseInt(number, 10, 64); err != nil {
			return g, false
		}
	}
	if length := n[5]; ok && length >= 0 && length <= int64(len(rest)) {
		return Grant{n[0], n[1], int(n[2]), n[3], n[4], rest[:length], rest[length:]}, true
	}
	return g, false
}
