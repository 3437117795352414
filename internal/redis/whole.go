package redis

import (
	"context"
	"time"

	"relock/internal/clock"
	"relock/internal/life"
	"relock/internal/script"
)

// Commands that wait until a slot has moved. Meanwhile Redis refuses those that name several of its keys. Such a command
// is no release that a caller waits for. It has a queue of its own, so that its pauses hold up no release.

// wholePause is how long such a command waits before it is sent again. Each attempt puts the session in doubt, and Close
// waits for one or two of these pauses.
const wholePause = 500 * time.Millisecond

// A wholeCommand is one of them.
type wholeCommand struct {
	script.Command
	until time.Duration // by the clock: when it is given up
}

// wholes are those of a Cleanup.
type wholes struct {
	queue life.Queue[wholeCommand]
	left  life.Group // counts them
}

// Whole has a command executed with all its keys, as soon as Redis serves these together. If Redis does not until then,
// the command is given up without a word, and is not counted.
func (q *Cleanup) Whole(cmd script.Command, until time.Duration) {
	q.wholes.left.Add(1)
	q.wholes.queue.Add(wholeCommand{cmd, until})
}

// Settled returns a channel that is closed when no command of Whole is left.
func (q *Cleanup) Settled() <-chan struct{} { return q.wholes.left.Idle() }

// sendWholes sends some commands. Those that Redis does not serve yet go back into the queue after a pause.
func (q *Cleanup) sendWholes(all []wholeCommand) {
	if q.env.Context.Err() != nil { // the session has ended
		q.wholes.left.Add(-len(all))
		return
	}
	cmds := make([]script.Command, len(all))
	for i := range all {
		cmds[i] = all[i].Command
	}
	ctx, cancel := context.WithTimeout(q.env.Context, q.timeout)
	results := q.send(ctx, cmds)
	cancel()
	var again []wholeCommand
	for i, res := range results {
		if err := res.Error(); err != nil && script.Classify(err) != script.Refused && q.env.Clock() < all[i].until {
			again = append(again, all[i])
		}
	}
	if len(again) > 0 {
		_ = clock.Sleep(q.env.Context, wholePause)
	}
	q.wholes.left.Add(len(again) - len(all))
	q.wholes.queue.Add(again...)
}
