package script

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/rueidis"
)

// Outcome says what is known of a script after its call returned an error.
type Outcome int

const (
	NotRun  Outcome = iota // it has certainly not run; trying again may help
	Unknown                // it may have run, may still run, or not
	Refused                // Redis refused it for good; trying again does not help
)

// Classify tells what an error of the client means for a script that writes. The table
// stands on experiments with rueidis; an error that it does not name counts as Unknown,
// which costs a second look and is never wrong.
func Classify(err error) Outcome {
	if re, ok := rueidis.IsRedisErr(err); ok {
		text := re.Error()
		for _, p := range transient {
			if strings.HasPrefix(text, p) {
				return NotRun
			}
		}
		return Refused
	}
	if errors.Is(err, ErrShape) {
		return Refused // Redis speaks nonsense
	}
	// rueidis.ErrClosing is Unknown: it also comes up while a client fails over.
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return NotRun
	}
	return Unknown
}

// ErrShape is a reply that the scripts never give.
var ErrShape = errors.New("rlock: unexpected reply")

// transient are the error replies that pass by themselves: a server that loads or fails
// over, a Cluster in motion, a script that is in the way.
var transient = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "MOVED", "ASK",
}

// IsTryAgain reports the answer of a Cluster that moves a slot: it serves keys one by one,
// but not those of a script that has some on either side.
func IsTryAgain(err error) bool {
	re, ok := rueidis.IsRedisErr(err)
	return ok && strings.HasPrefix(re.Error(), "TRYAGAIN")
}

// IsContext reports whether err is how a call ends whose context ended.
func IsContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
