package kind

import (
	"fmt"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// An Answer is the reply of an acquire script, see [Primitive].
type Answer struct {
	Status   int64
	Value    int64  // holds, or milliseconds to wait (kinds with permits: those, if Sized)
	Token    int64  // granted: the highest fencing token reserved
	Changed  bool   // granted: by this run of the script
	At       int64  // refused, and it stands in the line: Redis's time in ms
	Position int64  // refused: that of the entry, 0: it has none; of a fair lock see [Liner]
	Free     int64  // permits that are left for others
	Limit    int64  // the most that one request may be for; below 0: anything
	Sized    bool   // Free and Limit were told, and Value is known
	Owner    string // who is inside, of a refusal that tells it,
	Left     int64  // and for how many ms, if that is not in Value
}

// The statuses of an Answer, as the scripts return them.
const (
	Granted = 1
	Refused = 0
	NotHeld = -1
	ForGood = -2
)

// A Limit is what a handle of permits takes the limit for.
type Limit struct {
	Given int64
	// Other hears of another limit in Redis, or of one that is at least so high. It is called for each
	// such reply, and must not block.
	Other func(limit int64, exact bool)
}

// least compares it with what is known to be free and taken.
func (l *Limit) least(n int64) {
	if l != nil && n > l.Given {
		l.Other(n, false)
	}
}

// is compares it with the limit in Redis.
func (l *Limit) is(n int64) {
	if l != nil && n >= 0 && n != l.Given {
		l.Other(n, true)
	}
}

// Decode takes in the reply to op of a primitive of the kind. Errors: [script.ErrShape],
// [api.ErrUnavailable], Redis's own, or that of a context as it is: for how long Redis was waited
// for, the caller knows.
func (a *Answer) Decode(r rueidis.RedisResult, k *Kind, op *Op) error {
	var buf [6]int64
	reply, owner, err := script.Numbers(buf[:0], r, 4)
	switch {
	case err != nil && script.IsContext(err):
		return err
	case err != nil:
		return script.AsUnavailable(err)
	case len(reply) == 1 && k.Permits:
		op.Limit.least(reply[0] + int64(op.N))
		switch free := reply[0]; {
		case free < 0:
			reply = append(reply[:0], Granted, -free, 0, 1, 0, -1)
		case op.Next:
			reply = append(reply[:0], Granted, op.Lease.Milliseconds()+1, 0, 1, free, -1)
		default:
			reply = append(reply[:0], Granted, -1, 0, 1) // a caller that has come since asks for itself
		}
	case len(reply) == 1 && reply[0] == Granted:
		reply = append(reply, 1, 0, 1)
	case owner != "" && len(reply) == 5:
		a.Left, reply = reply[4], reply[:4]
	case len(reply) != 4 && len(reply) != 6:
		return fmt.Errorf("%w: %d elements", script.ErrShape, len(reply))
	}
	if a.Sized = len(reply) == 6; a.Sized {
		a.Free, a.Limit = reply[4], reply[5]
	}
	a.Status, a.Value, a.Owner = reply[0], reply[1], owner
	if a.Status == Granted {
		a.Token, a.Changed = reply[2], reply[3] == 1
	} else {
		a.At, a.Position = reply[2], reply[3]
	}
	switch {
	case op.Limit == nil:
	case a.Status == ForGood:
		op.Limit.is(a.Value)
	case a.Sized && a.Status == Granted:
		op.Limit.least(a.Free + int64(op.N))
	case a.Sized:
		op.Limit.is(a.Limit)
	}
	return nil
}
