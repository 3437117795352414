package main

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
	"relock/internal/script"
)

// latchPrefix begins the channel of a latch, as Redisson names it; other kinds have a colon behind theirs.
const latchPrefix = "redisson_countdownlatch__channel__"

// latchChannel is what those that wait for a latch listen on; package latch says why a Cluster has another one.
func latchChannel(style keyname.Style, name string) string {
	c := latchPrefix + "{" + name + "}"
	if style.Cluster && keyname.Slot(c) != keyname.Slot(name) {
		return style.Prefix(strings.TrimRight(latchPrefix, "_"), name)
	}
	return c
}

// latchName returns the latch that a channel is of.
func latchName(channel string) string {
	if inner, ok := strings.CutPrefix(channel, latchPrefix+"{"); ok {
		return strings.TrimSuffix(inner, "}")
	}
	return channelName(channel)
}

// channelName returns the lock that a channel is of.
func channelName(channel string) string {
	_, tagged, _ := strings.Cut(channel, ":")
	return semaphoreName(tagged + permitsSuffix)
}

// listenedTo returns the channels that match a pattern and have subscribers, on all nodes. It returns too how
// many commands that took.
func listenedTo(ctx context.Context, client rueidis.Client, patterns ...string) (channels []string, sent int, err error) {
	all := nodes(client)
	found := make([][]string, len(all))
	err = onNodes(all, func(i int, n node) error {
		var cmds rueidis.Commands
		for _, pattern := range patterns {
			cmds = append(cmds, n.B().PubsubChannels().Pattern(pattern).Build(), n.B().PubsubShardchannels().Pattern(pattern).Build())
		}
		for k, r := range n.DoMulti(ctx, cmds...) {
			some, err := r.AsStrSlice()
			if err != nil && k%2 == 0 { // sharded channels are of Redis 7 and later
				return err
			}
			found[i] = append(found[i], some...)
		}
		return nil
	})
	for _, some := range found {
		channels = append(channels, some...)
	}
	return channels, 2 * len(patterns) * len(all), err
}

// awaitedLatches returns the names of latches that are waited for: nothing else tells one from another integer.
func awaitedLatches(ctx context.Context, client rueidis.Client) (names []string, sent int, err error) {
	channels, sent, err := listenedTo(ctx, client, strings.TrimRight(latchPrefix, "_")+"*")
	if script.Denied(err) {
		return nil, sent, nil
	}
	for _, c := range channels {
		names = append(names, latchName(c))
	}
	return names, sent, err
}

// asLatch reads an integer as the count of a latch.
func (l *Lock) asLatch() {
	l.Kind = kindLatch
	if l.Free != nil {
		l.Left, l.Free = l.Free, nil
	}
}
