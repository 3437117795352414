package script

// SetFlying has so many calls be on their way.
func (c *Connection) SetFlying(n int) { c.flying.Store(int64(n)) }
