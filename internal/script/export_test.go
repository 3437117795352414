package script

import (
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
