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
	Refused                // Redis refused it; trying again at once does not help
)

// Classify tells what an error of the client means for a script that writes. The table
// stands on experiments with rueidis; an error that it does not name counts as Unknown,
// which costs a second look and is never wrong.
func Classify(err error) Outcome {
	if re, ok := reply(err); ok {
		switch {
		case says(re.Error(), transient):
			return NotRun
		case cutOff(re):
			return Unknown
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

// Unavailable reports whether err, of the client, says that Redis did not answer, or that it
// cannot serve now: whatever the key and its owners are, the next command would get the same.
// The end of a context counts as no answer.
func Unavailable(err error) bool {
	if re, ok := reply(err); ok {
		return says(re.Error(), transient) || says(re.Error(), denied) || cutOff(re)
	}
	return err != nil && !rueidis.IsRedisNil(err) && !rueidis.IsParseErr(err) && !errors.Is(err, ErrShape)
}

// Passes reports whether the text of err is that of an error reply that passes by itself: rueidis makes
// other errors of some replies, which have the text alone.
func Passes(err error) bool { return says(err.Error(), transient) }

// Denied reports whether err is the answer of a server that does not allow the command to this
// user.
func Denied(err error) bool { return replies(err, denied...) }

// Lacks reports whether err is the answer of a server that does not know a command, of a script or itself. Inside
// a script Redis says "called from script", before 7.0 "called from Lua script".
func Lacks(err error) bool {
	re, ok := reply(err)
	if !ok {
		return false
	}
	text := unwrapped(re.Error())
	return strings.HasPrefix(text, "unknown command") || strings.HasPrefix(text, "Unknown ") && strings.Contains(text, "command called from")
}

// Midway reports whether err says that the server does not allow this user a command inside a script: what
// the script has written before stays. Which commands those are may change at any time.
func Midway(err error) bool {
	re, ok := reply(err)
	return ok && (strings.Contains(re.Error(), "user executing the script") || strings.Contains(re.Error(), "ACL failure in script"))
}

// DeniedKeys reports whether err is the answer of a server that does not let this user at the
// keys, whatever the command. Redis before 7.2 has "one of the keys" and "at least one of the
// keys"; later ones and Valkey have "a key", or the key's name.
func DeniedKeys(err error) bool {
	if !Denied(err) {
		return false
	}
	text := Text(err)
	return strings.Contains(text, "one of the keys") || strings.Contains(text, "access a key") ||
		strings.Contains(text, "' key")
}

// reply returns the error reply in err, if Redis has sent one.
func reply(err error) (re *rueidis.RedisError, ok bool) {
	if errors.As(err, &re) {
		return rueidis.IsRedisErr(re)
	}
	return nil, false
}

// replies reports whether err is an error reply that begins with one of the codes.
func replies(err error, codes ...string) bool {
	re, ok := reply(err)
	return ok && says(re.Error(), codes)
}

// says reports whether the text of an error reply begins with one of the codes. The code "ERR"
// is not in the text: rueidis takes it off.
func says(text string, codes []string) bool {
	text = unwrapped(text)
	for _, code := range codes {
		if strings.HasPrefix(text, code) {
			return true
		}
	}
	return false
}

// Text returns what an error reply says.
func Text(err error) string { return unwrapped(err.Error()) }

// unwrapped takes off what Redis before 7.0 puts in front of the error of a command inside a
// script: "Error running script (call to f_...): @user_script:1: @user_script: 1: -".
func unwrapped(text string) string {
	const mark = "@user_script: "
	if !strings.HasPrefix(text, "Error running script") && !strings.HasPrefix(text, "@user_script") {
		return text
	}
	if at := strings.LastIndex(text, mark); at >= 0 {
		if _, inner, ok := strings.Cut(text[at+len(mark):], ": "); ok {
			return strings.TrimPrefix(inner, "-")
		}
	}
	return text
}

// ErrShape is a reply that the scripts never give.
var ErrShape = errors.New("rlock: unexpected reply")

// transient are the error replies that pass by themselves: a server that loads or fails
// over, one that has run out of memory, disk, replicas or connections, a Cluster in motion, a
// script that is in the way. Redis sends them before the first write of a script.
var transient = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "BUSY", "MOVED", "ASK",
	"OOM", "MISCONF", "max number of clients",
}

// noPrimary reports whether err is the answer of a server that is no primary, or loads its data:
// after a failover it may be the old one. A replica loads what its primary sends it when it begins
// as one; without a link to a primary it may refuse everything.
func noPrimary(err error) bool { return replies(err, "READONLY", "LOADING", "MASTERDOWN") }

// loads reports whether err is the answer of a server that loads its data.
func loads(err error) bool { return replies(err, "LOADING") }

// denied are the error replies of a server that does not let this user do something. An
// operator has to change that, so a Lock does not wait for it. Before Redis 7.2 scripts get
// the text without a code.
var denied = []string{
	"NOPERM", "NOAUTH", "WRONGPASS", "The user executing the script", "ACL failure in script",
}

// cutOff reports whether re is the end of a script in the middle: of a Cluster whose slot moves. There
// Redis refuses each command on a key that is not there, also on one that the script itself has
// emptied. What the script has written before stays, and a second run does the rest.
func cutOff(re *rueidis.RedisError) bool {
	return strings.Contains(re.Error(), "attempted to access a non local key")
}

// IsTryAgain reports the answer of a Cluster that moves a slot: it serves keys one by one,
// but not those of a script that has some on either side.
func IsTryAgain(err error) bool {
	re, ok := reply(err)
	return ok && strings.HasPrefix(re.Error(), "TRYAGAIN")
}

// fewerKeys reports whether Redis may take the command with fewer keys: a slot moves, or this user may not
// use all of them.
func fewerKeys(err error) bool { return IsTryAgain(err) || DeniedKeys(err) }

// IsContext reports whether err is how a call ends whose context ended.
func IsContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
