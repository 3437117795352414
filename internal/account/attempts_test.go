package account_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"relock/internal/account"
	"relock/internal/api"
	"relock/internal/redis"
)

var (
	errBreak = errors.New("the connection broke") // the command may have run
	errEnded = fmt.Errorf("waiting: %w", context.DeadlineExceeded)
)

// after returns the outcome of an attempt that took so long.
func after(took time.Duration, err error) *account.Outcome {
	return &account.Outcome{Err: err, Sent: time.Hour, Now: time.Hour + took}
}

func granted(err error, asked bool, took time.Duration) *account.Outcome {
	o := after(took, err)
	o.Granted, o.Unacknowledged = true, asked
	return o
}

// What the error of a Lock says of Redis: nothing if that has answered, or was not given the time to.
func TestErr(t *testing.T) {
	const soon, late = account.Grace - 1, account.Grace
	for what, c := range map[string]struct {
		outcomes []*account.Outcome
		want     error
	}{
		"none":                                     {nil, nil},
		"an answer":                                {[]*account.Outcome{after(late, nil)}, nil},
		"no answer, soon given up":                 {[]*account.Outcome{after(soon, errEnded)}, api.ErrNoAnswer},
		"an answer, then none, soon given up":      {[]*account.Outcome{after(0, nil), after(soon, errEnded)}, nil},
		"an answer, then none for long":            {[]*account.Outcome{after(0, nil), after(late, errEnded)}, api.ErrNoAnswer},
		"a failure":                                {[]*account.Outcome{after(0, errBreak)}, errBreak},
		"a failure, then given up: it says more":   {[]*account.Outcome{after(0, errBreak), after(late, errEnded)}, errBreak},
		"a failure, then an answer":                {[]*account.Outcome{after(0, errBreak), after(0, nil)}, nil},
		"granted, and the caller went away":        {[]*account.Outcome{granted(errEnded, false, late)}, nil},
		"replicas did not acknowledge for long":    {[]*account.Outcome{granted(errEnded, true, late)}, redis.ErrNotYet},
		"replicas were not given time":             {[]*account.Outcome{granted(errEnded, true, soon)}, nil},
		"replicas had failed before":               {[]*account.Outcome{after(0, errBreak), granted(errEnded, true, late)}, errBreak},
		"replicas, then given up soon: it answers": {[]*account.Outcome{granted(errEnded, true, soon), after(soon, errEnded)}, nil},
	} {
		var l account.Attempts
		for _, o := range c.outcomes {
			l.Note(o)
		}
		if l.Err != c.want {
			t.Errorf("%s: %v, want %v", what, l.Err, c.want)
		}
	}
	var l account.Attempts
	o := after(soon, errEnded)
	o.Others = true
	if l.Note(o); l.Err != nil {
		t.Errorf("Redis has just answered another Lock: %v", l.Err)
	}
}

// An attempt without an answer may have run, until Redis says that it has not, and may still come after.
func TestUnknown(t *testing.T) {
	var l account.Attempts
	if l.MayHaveRun {
		t.Error("something is unknown before anything was sent")
	}
	l.Note(&account.Outcome{Err: errBreak, Sent: 1})
	l.Note(&account.Outcome{Err: errEnded, Sent: 2})
	if !l.MayHaveRun || l.Doubted != 1 || l.Failures != 2 || !l.MayCome {
		t.Errorf("two failures: %+v", l)
	}
	l.Note(&account.Outcome{Sent: 3})
	if l.MayHaveRun || !l.MayCome || l.Failures != 0 {
		t.Errorf("refused: %+v", l)
	}
	l.Note(&account.Outcome{Err: errBreak, Sent: 4})
	if l.Doubted != 4 {
		t.Errorf("the first in doubt was sent at %v", l.Doubted)
	}
	l.Forget()
	if l.MayHaveRun || l.MayCome {
		t.Errorf("forgotten: %+v", l)
	}
	l.Note(&account.Outcome{Granted: true})
	if !l.MayHaveRun {
		t.Error("what was granted may not stand")
	}
}
