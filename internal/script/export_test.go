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
