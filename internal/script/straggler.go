package script

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/life"
)

// Stragglers are the goroutines of [Runner.multi] whose callers have left. The context of such a goroutine has ended, so it
// sends nothing any more; but it may have looked at that just before, have been descheduled, and be about to write.

// stragglerPatience is longer than a busy machine lets a goroutine wait that could run. One that does not return for longer
// waits for a connection, and looks at its context behind that.
const stragglerPatience = 100 * time.Millisecond

// Behind is [Runner.Multi] for commands that end what others have begun, whose callers may have left: it sends them behind
// those.
func (r *Runner) Behind(ctx context.Context, cs []Command) []rueidis.RedisResult {
	if r.stragglers.Count() > 0 {
		life.Await(r.stragglers.Idle(), stragglerPatience)
	}
	return r.Multi(ctx, cs)
}
