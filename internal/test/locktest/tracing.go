package locktest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A Tracing is a session whose hooks are checked, beside one without hooks.
type Tracing struct {
	T       *testing.T
	Ctx     context.Context
	Server  *redistest.Server
	Ledger  *Ledger
	Session *rlock.Session
	Other   *rlock.Session
}

// NewTracing makes the two sessions.
func NewTracing(t *testing.T, s *redistest.Server, cfg rlock.Config) *Tracing {
	tr := &Tracing{T: t, Ctx: Within(t, 30*time.Second), Server: s, Ledger: new(Ledger)}
	cfg.Trace = tr.Ledger.Trace()
	tr.Session, tr.Other = Dial(t, s, cfg), Dial(t, s, rlock.Config{})
	tr.Ledger.Take()
	return tr
}

// Told waits until the hooks have told so much, and checks it.
func (tr *Tracing) Told(want ...string) {
	tr.T.Helper()
	var got []string
	redistest.Eventually(tr.T, 5*time.Second, "the hooks have told", func() bool {
		got = append(got, tr.Ledger.Take()...)
		return len(got) >= len(want)
	})
	if fmt.Sprint(got) != fmt.Sprint(want) {
		tr.T.Errorf("the hooks tell\n%q, want\n%q", got, want)
	}
}

// Closed closes the session and checks that everything has ended.
func (tr *Tracing) Closed() {
	tr.T.Helper()
	Must(tr.T, tr.Session.Close())
	if got := tr.Ledger.Gauges(); got != AllZero {
		tr.T.Errorf("after Close: %s", got)
	}
	tr.Ledger.Check(tr.T)
}

// QueueUp has a caller of the session wait in the line. It returns when that has asked again, as the first
// of the line does once: no attempt is on its way then.
func (tr *Tracing) QueueUp(opts ...rlock.LockOption) <-chan Locked {
	tr.T.Helper()
	before := tr.Ledger.Count("attempt false")
	got := make(chan Locked, 1)
	go func() {
		section, h, err := rlock.New(tr.Session, "x").Lock(tr.Ctx, opts...)
		got <- Locked{Ctx: section, Hold: h, Err: err}
	}()
	redistest.Eventually(tr.T, 5*time.Second, "a second refusal", func() bool { return tr.Ledger.Count("attempt false") == before+2 })
	return got
}
