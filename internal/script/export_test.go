package script

import (
	"context"
	"net"
	"time"
)

// SetFlying has so many calls be on their way.
func (c *Connection) SetFlying(n int) { c.flying.Store(int64(n)) }

// NewLink returns the connection that rueidis is given for conn.
func NewLink(conn net.Conn) net.Conn { return &link{Conn: conn} }

// Pauses are those between two times that connections are made anew.
type Pauses struct{ pauses }

func (p *Pauses) Due(now time.Time) bool { return p.due(now) }

func (p *Pauses) Executed() { p.executed = true }

// Left reports whether a call on the direct connection was given up, and others wait for its end.
func (r *Runner) Left() bool { return r.direct.left.Load() }

// HasDirect reports whether a direct connection is ready.
func (r *Runner) HasDirect() bool { return r.direct.link.Load() != nil }

// Wait waits as Multi does, for no call to be under way on the direct connection.
func (r *Runner) Wait(ctx context.Context) error { return r.direct.wait(ctx) }

// RenewLate renews the direct connection as a caller does that has found none a while ago. It reports
// whether one is being made then.
func (r *Runner) RenewLate() bool {
	d := r.direct
	d.mu.Lock()
	d.next = time.Time{}
	d.mu.Unlock()
	d.renew()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dialing
}
