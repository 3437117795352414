package script

import "net"

// SetFlying has so many calls be on their way.
func (c *Connection) SetFlying(n int) { c.flying.Store(int64(n)) }

// NewLink returns the connection that rueidis is given for conn.
func NewLink(conn net.Conn) net.Conn { return &link{Conn: conn} }
