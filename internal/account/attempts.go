package account

import (
	"time"

	"relock/internal/api"
	"relock/internal/redis"
	"relock/internal/script"
)

// Attempts is the record of the attempts that one Lock has sent, one after the other. The zero value has none.
type Attempts struct {
	Err        error // of the last one, nil if it was answered
	Failures   int   // in a row
	MayHaveRun bool  // one may have run whose outcome is not known, or has run: the last was granted, or was ended midway
	MayCome    bool  // one whose outcome was never known may run late, even now
	Midway     bool  // an ACL has ended one midway: what gives back what that has taken may be denied too

	Doubted  time.Duration // MayHaveRun: when the first of those was sent whose outcome is not known
	answered bool          // one was answered
}

// An Outcome is what became of an attempt.
type Outcome struct {
	Err            error // nil: it was answered
	Granted        bool  // Redis has granted it, whatever Err is
	Unacknowledged bool  // and replicas were asked to acknowledge it, and did not
	Others         bool  // Redis has answered another Lock just before
	Sent, Now      time.Duration
}

// Grace is how long Redis may take to answer an attempt whose caller leaves meanwhile. Within that time Redis
// counts as available if it has answered an earlier attempt of that caller, or of the caller before it.
const Grace = 100 * time.Millisecond

// Note records the outcome of an attempt.
func (l *Attempts) Note(o *Outcome) {
	l.answered = l.answered || o.Others
	if o.Err == nil {
		l.Err, l.answered, l.Failures, l.MayHaveRun = nil, true, 0, o.Granted
		return
	}
	ended, late := script.IsContext(o.Err), o.Now-o.Sent >= Grace
	switch {
	case o.Unacknowledged && ended:
		l.answered = true
		if l.Err == nil && late { // else how many have acknowledged the attempt before
			l.Err = redis.ErrNotYet
		}
	case o.Granted && ended:
		l.Err, l.answered = nil, true
	case !ended:
		l.Err = o.Err
	case l.Err == nil && (!l.answered || late):
		l.Err = api.ErrNoAnswer
	}
	l.Failures++
	unknown := script.Classify(o.Err) == script.Unknown
	midway := script.Midway(o.Err)
	l.Midway = l.Midway || midway
	if unknown || midway {
		if !l.MayHaveRun {
			l.Doubted = o.Sent
		}
		l.MayHaveRun, l.MayCome = true, l.MayCome || unknown
	}
}

// Forget drops the attempts that may have run: another claim accounts for them from now on.
func (l *Attempts) Forget() { l.MayHaveRun, l.MayCome = false, false }
