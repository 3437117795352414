package pubsub

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

var (
	// ErrClosed is returned by Listen once the hub is closed, and to the Listen
	// calls that are blocked while it closes.
	ErrClosed = errors.New("pubsub: hub closed")

	// ErrRefused is wrapped, together with the server's own error, when the server
	// answers the SUBSCRIBE of that very channel with an error: an ACL without the
	// channel, a proxy without pub/sub. It comes without traffic from then on until
	// the refusal is [RefusalRetry] old.
	ErrRefused = errors.New("pubsub: subscribe refused")
)

var (
	errNilClient = errors.New("pubsub: nil client")
	errNilFunc   = errors.New("pubsub: nil func")

	// errMoved ends a connection whose address the client no longer knows.
	errMoved = errors.New("pubsub: the node is not part of the deployment any more")
	// errReconnect ends a connection that is to be made anew.
	errReconnect = errors.New("pubsub: the server is left, for its name may lead to another")
	// errIdle ends a connection on which nothing is subscribed.
	errIdle = errors.New("pubsub: connection not needed any more")
	// errLost stands in where rueidis closes the error channel without an error.
	errLost = errors.New("pubsub: connection lost")
	// errSilent ends a connection on which the answers to SUBSCRIBE have ceased.
	errSilent = errors.New("pubsub: subscription not confirmed in time")
	// errNoOwner is what Listen gets for a slot that no node serves.
	errNoOwner = errors.New("pubsub: no node serves the channel's slot")
)

// verdict is what an answer to SUBSCRIBE means for its channels.
type verdict uint8

const (
	accepted  verdict = iota // confirmations follow, or have come already
	elsewhere                // right question, wrong node or moment: find the owner, try again
	refused                  // the server does not want to, and asking again soon is no use
	broken                   // no answer at all: the connection is done for
)

// busy lists the error codes of a server that is up but not able to serve right
// now. None of them says anything about the channel.
var busy = []string{"TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "BUSY", "READONLY"}

// unentered lists the beginnings of the answers by which a server lets the client not in at all: rueidis gives
// them as those to its first command.
var unentered = []string{"NOAUTH", "WRONGPASS", "max number of clients"}

// saysNothing reports whether err is no answer to a question, be it that the server has not answered, cannot
// serve right now, or does not let the client in. Another server may answer.
func saysNothing(err error) bool {
	re, answered := rueidis.IsRedisErr(err)
	begins := func(code string) bool { return strings.HasPrefix(re.Error(), code) }
	return err != nil && (!answered || slices.ContainsFunc(busy, begins) || slices.ContainsFunc(unentered, begins))
}

// judge sorts the answer to a SUBSCRIBE. moved is the new owner's address when
// the server named one.
func judge(err error) (v verdict, moved string) {
	if err == nil {
		return accepted, ""
	}
	re, ok := rueidis.IsRedisErr(err)
	if !ok {
		return broken, ""
	}
	if addr, ok := re.IsMoved(); ok {
		return elsewhere, addr
	}
	if _, ok := re.IsAsk(); ok {
		return elsewhere, ""
	}
	for _, code := range busy {
		if strings.HasPrefix(re.Error(), code) {
			return elsewhere, ""
		}
	}
	return refused, ""
}

// listenError gives an error its operation and channel.
func listenError(channel string, err error) error {
	return fmt.Errorf("pubsub: listen on %q: %w", channel, err)
}
