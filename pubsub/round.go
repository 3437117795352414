package pubsub

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// roundSize is how many channels go into one round. A lost round is repeated as a whole.
const roundSize = 2000

// take returns the work of one round; empty says that no channel is on c at all.
func (c *conn) take() (unsubs, subs []*channel, empty bool) {
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	// A round is taken from the state of this moment. Whatever is added while it is
	// under way goes into the next one, and c.wake says so.
	unsubs, c.unsubs = cut(c.unsubs)
	if len(c.unsubs) > 0 {
		// All that is to be unsubscribed goes before anything is subscribed: the
		// same channel may be on both lists.
		return unsubs, nil, false
	}
	var list []*channel
	list, c.subs = cut(c.subs)
	for _, ch := range list {
		if ch.conn == c && ch.state == queued { // else dropped before its turn came
			ch.state = sent
			subs = append(subs, ch)
		}
	}
	c.awaiting = len(subs)
	if len(c.subs) > 0 {
		c.wake.Up() // stale ones only do not make the rest wait
	}
	return unsubs, subs, c.n == 0
}

// cut splits off the first roundSize elements.
func cut(s []*channel) (head, tail []*channel) {
	if len(s) <= roundSize {
		return s, nil
	}
	return s[:roundSize:roundSize], s[roundSize:]
}

// round sends one round and waits until each channel of it is confirmed or has failed. It gives
// up when the server says nothing for answerTimeout.
func (c *conn) round(ctx context.Context, unsubs, subs []*channel) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.hub.silence, func() { cancel(errSilent) })
	defer silence.Stop()
	c.putOff(silence)
	defer c.putOff(nil)
	if len(unsubs) > 0 {
		if err := c.unsubscribe(ctx, unsubs); err != nil {
			return err
		}
	}
	again, err := c.subscribe(ctx, subs, commandSize)
	if err != nil {
		return err
	}
	// One refused channel fails the command it is in: ask for each alone.
	if _, err = c.subscribe(ctx, again, 1); err != nil {
		return err
	}
	for {
		c.hub.mu.Lock()
		done := c.awaiting <= 0
		c.hub.mu.Unlock()
		if done {
			// A wake-up received below may have meant work. One too many costs a
			// look around, one too few a channel that is never subscribed.
			c.wake.Up()
			return nil
		}
		select {
		case <-c.wake:
		case err := <-c.lost:
			return c.ended(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// putOff has each answer from now on put the end of the round off; nil ends that.
func (c *conn) putOff(silence *time.Timer) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	c.silence = silence
}

// answered notes that the server is not silent. Caller holds hub.mu.
func (c *conn) answered() {
	if c.silence != nil {
		c.silence.Reset(c.hub.silence)
	}
}

// commandSize is how many channels go into one command. One refused channel costs as
// many repetitions, and a command keeps the server from its other clients.
const commandSize = 250

// subscribe sends SUBSCRIBE for subs, up to size channels a command, and deals with
// the answers. It returns the channels of commands that were refused as a whole.
func (c *conn) subscribe(ctx context.Context, subs []*channel, size int) (again []*channel, err error) {
	if len(subs) == 0 {
		return nil, nil
	}
	groups := group(subs, size)
	cmds := make([]rueidis.Completed, len(groups))
	for i, g := range groups {
		if g[0].key.sharded {
			cmds[i] = c.client.B().Ssubscribe().Channel(names(g)...).Build()
		} else {
			cmds[i] = c.client.B().Subscribe().Channel(names(g)...).Build()
		}
	}
	// The answer to a command is its first confirmation; the others of the command
	// follow it directly, and all reach onSubscription. No error here means therefore
	// that each channel of the command is confirmed or about to be.
	for i, r := range c.send(ctx, cmds) {
		err := r.Error()
		v, moved := judge(err)
		switch {
		case v == accepted:
		case v == broken:
			return nil, c.broken(ctx, err)
		case v == refused && len(groups[i]) > 1:
			again = append(again, groups[i]...)
		default:
			c.unaccepted(groups[i], v, moved, err)
		}
	}
	return again, nil
}

// unsubscribe sends UNSUBSCRIBE for channels. What the server thinks of it does not matter:
// a refusal means that there is nothing to unsubscribe, or that it is not allowed.
//
// rueidis sends a PING behind UNSUBSCRIBE, and panics when the answer to that is an error which it does not know for one
// (v1.0.79): MISCONF of a server that cannot save, MASTERDOWN of a replica. BUSY, while a script of anybody's keeps the
// server for too long, is the answer to UNSUBSCRIBE too, with the same end. So the server is asked first; and if that is
// how it answers a PING the connection ends, and the subscriptions with it.
func (c *conn) unsubscribe(ctx context.Context, chs []*channel) error {
	err := c.client.Do(ctx, c.client.B().Ping().Build()).Error()
	if re, answered := rueidis.IsRedisErr(err); answered && !strings.HasPrefix(re.Error(), "LOADING") && !strings.Contains(re.Error(), "'ping'") {
		return fmt.Errorf("pubsub: unsubscribe: %w", err)
	}
	groups := group(chs, commandSize)
	cmds := make([]rueidis.Completed, len(groups))
	for i, g := range groups {
		if g[0].key.sharded {
			cmds[i] = c.client.B().Sunsubscribe().Channel(names(g)...).Build()
		} else {
			cmds[i] = c.client.B().Unsubscribe().Channel(names(g)...).Build()
		}
	}
	for _, r := range c.send(ctx, cmds) {
		if err := r.NonRedisError(); err != nil {
			return fmt.Errorf("pubsub: unsubscribe: %w", c.broken(ctx, err))
		}
	}
	return nil
}

// send sends commands until they are answered, or the connection is lost. Over RESP2 the client has another one for
// messages. When that alone is lost rueidis sends what is not answered over it again, in vain, until ctx ends (v1.0.79).
func (c *conn) send(ctx context.Context, cmds []rueidis.Completed) []rueidis.RedisResult {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan []rueidis.RedisResult, 1)
	go func() { answers <- c.client.DoMulti(ctx, cmds...) }()
	select {
	case all := <-answers:
		return all
	case err := <-c.lost:
		cancel()
		noted := make(chan error, 1)
		noted <- err
		c.lost = noted // what was answered before counts all the same
		return <-answers
	}
}

// broken returns why commands were not answered, for which the client has err.
func (c *conn) broken(ctx context.Context, err error) error {
	select {
	case lost := <-c.lost:
		return c.ended(lost)
	default:
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause // says more than "deadline exceeded"; it is no caller's ctx
	}
	return err
}

// group splits channels into commands: at most size each, the sharded ones by slot, since
// SSUBSCRIBE takes channels of one slot only.
func group(chs []*channel, size int) (groups [][]*channel) {
	type class struct {
		sharded bool
		slot    uint16
	}
	open := make(map[class]int) // class -> index of the group that is being filled
	for _, ch := range chs {
		k := class{ch.key.sharded, ch.slot}
		i, ok := open[k]
		if !ok || len(groups[i]) == size {
			i = len(groups)
			groups = append(groups, nil)
			open[k] = i
		}
		groups[i] = append(groups[i], ch)
	}
	return groups
}

func names(chs []*channel) []string {
	all := make([]string, len(chs))
	for i, ch := range chs {
		all[i] = ch.key.name
	}
	return all
}
