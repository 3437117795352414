package memredis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"relock/internal/keyname"
	"relock/internal/kind"
	"relock/internal/mutex"
	"relock/internal/script"
	"relock/internal/waiting"
)

// A writer chooses what commands are made of: few keys, some of which are of another sort, and wrong numbers among others.
type writer struct{ *rand.Rand }

func (w writer) pick(of ...string) string { return of[w.IntN(len(of))] }
func (w writer) key() string              { return w.pick("a", "b", "c", "d", "e") }
func (w writer) name() string             { return w.pick("x", "y", "z", "7", "") }
func (w writer) num() string {
	return w.pick("0", "1", "-3", "12", "9007199254740991", "007", "no", "1.5")
}
func (w writer) bound() string {
	return w.pick("-inf", "+inf", "(1", "0", "(5000", "12", "(-9e15", "3e15")
}
func (w writer) score() string {
	return w.pick("1", "2", "-9e15", "8600000000000001", "12", "0.5", "no")
}
func (w writer) index() string { return w.pick("0", "1", "-1", "-2", "5") }

// randomCommand is one of those that there are.
func randomCommand(rng *rand.Rand) []string {
	n := rng.IntN(36)
	for _, c := range commands {
		if n -= c.weight; n < 0 {
			return c.write(writer{rng})
		}
	}
	panic("the weights of the commands add up to less")
}

// commands are all, and how often each is chosen among 36.
var commands = []struct {
	weight int
	write  func(w writer) []string
}{
	{1, func(w writer) []string { return []string{"DEL", w.key(), w.key()} }},
	{1, func(w writer) []string { return []string{"EXISTS", w.key(), w.key(), w.key()} }},
	{1, func(w writer) []string { return []string{"PTTL", w.key()} }},
	{1, func(w writer) []string {
		return []string{"PEXPIRE", w.key(), w.pick("100000", "200000", "0", "-5", "x")}
	}},
	{1, func(w writer) []string { return []string{"PERSIST", w.key()} }},
	{1, func(w writer) []string { return []string{"GET", w.key()} }},
	{1, func(w writer) []string {
		return slices.Concat([]string{"SET", w.key(), w.num()}, [][]string{nil, {"PX", "300000"}, {"PX", "0"}, {"QX", "1"}, {"KEEPTTL"}}[w.IntN(5)])
	}},
	{1, func(w writer) []string {
		return []string{w.pick("INCRBY", "DECRBY"), w.key(), w.pick("1", "5", "-2", "9223372036854775807", "x")}
	}},
	{1, func(w writer) []string { return []string{"HGET", w.key(), w.name()} }},
	{2, func(w writer) []string { return []string{"HSET", w.key(), w.name(), w.num(), w.name(), w.num()} }},
	{1, func(w writer) []string { return []string{"HSET", w.key(), w.name()} }},
	{1, func(w writer) []string { return []string{"HDEL", w.key(), w.name(), w.name()} }},
	{1, func(w writer) []string {
		return []string{w.pick("HLEN", "HGETALL", "HKEYS", "SCARD", "ZCARD", "SMEMBERS", "LLEN"), w.key()}
	}},
	{1, func(w writer) []string { return []string{"HEXISTS", w.key(), w.name()} }},
	{1, func(w writer) []string { return []string{"HINCRBY", w.key(), w.name(), w.pick("1", "-1", "x", "100")} }},
	{1, func(w writer) []string { return []string{"HMGET", w.key(), w.name(), w.name()} }},
	{1, func(w writer) []string { return []string{"SADD", w.key(), w.name(), w.name()} }},
	{1, func(w writer) []string { return []string{"SREM", w.key(), w.name(), w.name()} }},
	{1, func(w writer) []string { return []string{"SISMEMBER", w.key(), w.name()} }},
	{3, func(w writer) []string {
		return slices.Concat([]string{"ZADD", w.key()}, [][]string{nil, {"LT"}, {"GT"}, {"XX"}}[w.IntN(4)], []string{w.score(), w.name(), w.score(), w.name()})
	}},
	{1, func(w writer) []string { return []string{"ZREM", w.key(), w.name(), w.name()} }},
	{1, func(w writer) []string { return []string{"ZSCORE", w.key(), w.name()} }},
	{1, func(w writer) []string { return []string{"ZMSCORE", w.key(), w.name(), w.name()} }},
	{1, func(w writer) []string { return []string{"ZCOUNT", w.key(), w.bound(), w.bound()} }},
	{1, func(w writer) []string {
		return slices.Concat([]string{w.pick("ZRANGE", "ZREVRANGE"), w.key(), w.index(), w.index()}, [][]string{nil, {"WITHSCORES"}}[w.IntN(2)])
	}},
	{2, func(w writer) []string {
		return slices.Concat([]string{w.pick("ZRANGEBYSCORE", "ZREVRANGEBYSCORE"), w.key(), w.bound(), w.bound()},
			[][]string{nil, {"WITHSCORES"}, {"LIMIT", "0", "2"}, {"WITHSCORES", "LIMIT", "1", "1"}}[w.IntN(4)])
	}},
	{1, func(w writer) []string { return []string{"ZREMRANGEBYSCORE", w.key(), w.bound(), w.bound()} }},
	{1, func(w writer) []string { return []string{"RPUSH", w.key(), w.name(), w.name()} }},
	{1, func(w writer) []string { return []string{w.pick("LPOP", "TIME"), w.key()} }},
	{1, func(w writer) []string { return []string{"LINDEX", w.key(), w.index()} }},
	{1, func(w writer) []string { return []string{"LREM", w.key(), "0", w.name()} }},
	{1, func(w writer) []string { return []string{"ZINCRBY", w.key(), w.pick("1", "-2", "0.5", "x"), w.name()} }},
}

// randomScript is a call of a script of a mutex for one of three owners.
func randomScript(rng *rand.Rand) script.Command {
	space := &keyname.Space{Publishing: keyname.Publishes(false, false)}
	names := space.Names("lock")
	fair := rng.IntN(2) == 0
	p := mutex.New(names, mutex.Fencing{Fenced: true})
	if fair {
		p = mutex.NewFair(names, mutex.Fencing{Fenced: true})
	}
	session := string(rune('A' + rng.IntN(3)))
	owner := fmt.Sprintf("%s:%d", session, rng.IntN(2))
	w := waiting.Want{Session: session, Fair: fair, Deaf: fair && rng.IntN(2) == 0, Tokens: 1, Lease: 1250e6, Life: 500e9}
	op := &kind.Op{Owner: owner, Lease: 200e9, Private: true, Request: kind.Request{Tokens: 1}, Line: kind.Line{Named: true, Head: w.Head()}}
	if rng.IntN(4) == 0 {
		op.ID, op.ByIDs = fmt.Sprintf("%032d", rng.IntN(2)), true
	}
	op.Line.Again, op.Line.Waiting = rng.IntN(2) == 0, rng.IntN(2)
	switch rng.IntN(7) {
	case 0, 1, 2:
		if fair {
			op.Run = &waiting.RunAttempt{Entry: w.Head() + owner, Last: int64(1 + rng.IntN(2)), Waiting: 1, Again: op.Line.Again}
		}
		return p.Acquire(op)
	case 3, 4:
		op.All = true
		return p.Release(op)
	case 5:
		if fair {
			return p.Look([]string{w.Head() + owner})
		}
		cmd := p.Renew(op)
		cmd.Args = append([]string{"200000"}, cmd.Args...)
		return cmd
	}
	f := kind.Force{Owners: []string{owner}, ID: fmt.Sprint(rng.IntN(3)), Remembered: 100e9}
	return p.ForceUnlock(&f)
}
