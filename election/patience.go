package election

import (
	"context"
	"errors"
	"slices"
	"time"

	"relock/internal/api"
	"relock/internal/clock"
	"relock/internal/engine"
	"relock/internal/script"
	"relock/rlock"
)

// patience is for how long a Campaign goes on, which may take several leaderships: one can be lost
// before its value is published.
type patience struct {
	opts     []rlock.LockOption
	waits    bool          // as Lock does, through an outage too
	deadline time.Time     // of Wait; zero: none
	atLeast  time.Duration // for how long a leadership stands, also if it ends before
}

// newPatience is that of a Campaign with these options. What is wrong with them is for Lock to say.
func newPatience(ctx context.Context, opts []rlock.LockOption) *patience {
	o, err := api.Collect(opts)
	p := &patience{opts: opts, waits: err == nil && o.Retry == nil && !(o.Bounded && o.Wait == 0)}
	if p.atLeast = o.AtLeast; p.atLeast > 0 { // the lock is given back if there is no leadership
		p.opts = append(slices.Clip(p.opts), api.Keeps(ctx))
	}
	if o.Bounded {
		p.deadline = time.Now().Add(min(o.Wait, api.Longest))
	}
	return p
}

// over reports whether the time of Wait is over.
func (p *patience) over() bool { return !p.deadline.IsZero() && time.Until(p.deadline) <= 0 }

// next leaves the next Lock what is left of the time.
func (p *patience) next() {
	if !p.deadline.IsZero() {
		p.opts = append(slices.Clip(p.opts), rlock.Wait(max(0, time.Until(p.deadline))))
	}
}

// bound is for how long a value is sent: not behind the end of Wait, but for as long as a TryLock waits for Redis.
func (p *patience) bound(c *engine.Config) time.Duration {
	if p.deadline.IsZero() {
		return c.ReleaseTimeout
	}
	return min(c.ReleaseTimeout, max(c.TryTimeout(), time.Until(p.deadline)))
}

// publish publishes the first value of a leadership. While Redis is away it goes on trying, as a
// Lock does, for as long as the leadership lasts.
func (p *patience) publish(section context.Context, l *Leadership, value string) error {
	for n := 0; ; n++ {
		err := l.send(section, p.bound(l.election.handle.Session().Config()), "campaign", value, revisions.Add(1))
		if !p.waits || !errors.Is(err, rlock.ErrUnavailable) || script.Denied(err) || p.over() || clock.Pause(section, n) != nil {
			return err
		}
	}
}
