package proxy

// Taken returns how many bytes the proxy has read from clients and servers, but for the first lines.
func (p *Proxy) Taken() int64 { return p.taken.Load() }
