package check

import (
	"time"

	"relock/torture/nemesis"
	"relock/torture/oracle"
)

// reconnected is for how long after a fault a client may still find no connection. Connections
// to several servers are made one after another.
const reconnected = 2 * time.Second

// outages checks that no call said that Redis is unavailable while all was well.
func (c *checker) outages() {
	for i := range c.Processes {
		p := &c.Processes[i]
		for _, e := range p.Entries {
			if !e.Has(oracle.Outage) {
				continue
			}
			from, to := e.Call, e.Got
			if e.Kind == oracle.Section && e.Over != 0 {
				from, to = e.End, e.Over // it was Unlock that said so
			}
			if c.calmStretch(p, from-reconnected, to, func(*nemesis.Fault) bool { return false }) >= to-from+reconnected {
				c.add("no outage without a fault", e.Lock, from, "%s: a call of %v said that Redis is unavailable", p.Session, to-from)
			} else {
				c.res.Counts["outages that a fault explains"]++
			}
		}
	}
}
