package kind

import (
	"slices"
	"time"

	"relock/internal/script"
)

// A Force is one command of a ForceUnlock. Without owners it asks who holds the lock, and the rest is
// not set.
type Force struct {
	Owners []string // whose holds are meant
	// ID is that of the request. A script that has ended holds leaves a mark with it for so long, so
	// that another run of the request does not end those that a named owner has got since.
	ID         string
	Remembered time.Duration
}

// Command returns a call of force_unlock.lua. c has the keys of the lock and the first five arguments;
// marks begins the names of marks. Where Redis does not serve the mark together with the lock, since the
// slot moves, the call goes without it: the mark is not there before the first run, so it would be refused.
func (f *Force) Command(c script.Command, marks string) script.Command {
	unmarked := c
	unmarked.Args = slices.Concat(c.Args, []string{"0"}, f.Owners)
	if f.ID == "" {
		return unmarked
	}
	c.Keys = slices.Concat(c.Keys, []string{marks + ":" + f.ID})
	c.Args = slices.Concat(c.Args, []string{script.Millis(f.Remembered)}, f.Owners)
	c.Fewer = func(script.Command) script.Command { return unmarked }
	return c
}
