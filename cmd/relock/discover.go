package main

import (
	"context"
)

// discover goes a piece further through the keys, and asks which channels have subscribers.
func (p *sampler) discover(ctx context.Context) error {
	names, lined := make([][]string, len(p.scans)), make([][]string, len(p.scans))
	steps := make([]int, len(p.scans))
	all := make([]node, len(p.scans))
	for i, s := range p.scans {
		all[i] = s.node
	}
	err := onNodes(all, func(i int, n node) error {
		s := p.scans[i]
		for range scansAtOnce {
			into := &names[i]
			if s.kind == passLines {
				into = &lined[i]
			}
			some, done, err := s.step(ctx)
			steps[i]++
			if err != nil {
				return err
			}
			*into = append(*into, some...)
			if done {
				p.scans[i] = newScan(n, s.pattern, true) // from the beginning, at the next refresh
				break
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	waited, err := p.waitedFor(ctx)
	if err != nil {
		return err
	}
	latches, sent, err := awaitedLatches(ctx, p.client)
	if err != nil {
		return err
	}
	p.sent += sent
	for i := range names {
		p.sent += steps[i]
		p.watch(names[i], false)
		p.watch(lined[i], true)
		for _, name := range lined[i] {
			if w := p.watched[name]; w != nil && w.Kind == "" { // it is free, or was not looked at yet
				w.Kind = kindMutex
			}
		}
	}
	p.watch(waited, true)
	p.watch(latches, true)
	for _, name := range latches {
		if w := p.watched[name]; w != nil && w.Kind == "" {
			w.Kind = kindLatch
		}
	}
	return nil
}

// watch takes names into view, those that are waited for before others.
func (p *sampler) watch(names []string, waited bool) {
	for _, name := range names {
		if !p.match(name) {
			continue
		}
		p.found[name] = true
		if p.watched[name] != nil || len(p.watched) >= p.track && !(waited && p.makeRoom()) {
			continue
		}
		p.watched[name] = &Watched{Lock: Lock{Name: name}}
	}
	if len(p.found) > 100*p.track { // names come and go; this is a count for the eye only
		clear(p.found)
	}
}

// makeRoom takes the least busy lock that nobody waits for out of view.
func (p *sampler) makeRoom() bool {
	var least *Watched
	for _, w := range p.watched {
		if w.waiters() == 0 && (least == nil || w.changes < least.changes) {
			least = w
		}
	}
	if least == nil {
		return false
	}
	delete(p.watched, least.Name)
	return true
}

// waitedFor returns the names of locks whose channels have subscribers.
func (p *sampler) waitedFor(ctx context.Context) ([]string, error) {
	channels, sent, err := listenedTo(ctx, p.client, "redisson_lock__channel:*", "redisson_rwlock:*", "redisson_sc:*")
	p.sent += sent
	for i, c := range channels {
		channels[i] = channelName(c)
	}
	return channels, err
}
