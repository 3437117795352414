package quorum

import "time"

// AcquireSource is the Lua of the script, for the external tests.
var AcquireSource = acquireScript.Source()

// BoundReleases bounds from now on for how long a release waits for all Redises. The Mutex must not
// be used meanwhile.
func (m *Mutex) BoundReleases(d time.Duration) { m.bound = d }
