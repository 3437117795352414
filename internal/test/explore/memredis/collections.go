package memredis

import (
	"slices"
	"strconv"
)

var hashCommands = map[string]command{
	"HGET": {2, 2, hget}, "HSET": {3, 0, hset}, "HDEL": {2, 0, hdel}, "HLEN": {1, 1, hlen}, "HEXISTS": {2, 2, hexists},
	"HINCRBY": {3, 3, hincrBy}, "HGETALL": {1, 1, hgetAll}, "HKEYS": {1, 1, hkeys}, "HMGET": {2, 0, hmget},
}

var setCommands = map[string]command{
	"SADD": {2, 0, sadd}, "SREM": {2, 0, srem}, "SISMEMBER": {2, 2, sismember}, "SMEMBERS": {1, 1, smembers}, "SCARD": {1, 1, scard},
}

var listCommands = map[string]command{
	"LINDEX": {2, 2, lindex}, "LPOP": {1, 1, lpop}, "RPUSH": {2, 0, rpush}, "LREM": {3, 3, lrem}, "LLEN": {1, 1, llen},
}

func hget(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], hash)
	if bad != nil {
		return *bad
	}
	return v.fieldReply(args[1])
}

func (v *value) fieldReply(name string) Reply {
	if v != nil {
		if i := v.field(name); i >= 0 {
			return bulk(v.items[i+1])
		}
	}
	return none
}

func hset(r *Redis, args []string) Reply {
	if len(args)%2 == 0 {
		return Reply{Kind: Error, Text: "ERR wrong number of arguments for 'hset' command"}
	}
	v, bad := r.change(args[0], hash)
	if bad != nil {
		return *bad
	}
	n := 0
	for i := 1; i < len(args); i += 2 {
		if at := v.field(args[i]); at >= 0 {
			v.items[at+1] = args[i+1]
			continue
		}
		v.items = append(v.items, args[i], args[i+1])
		n++
	}
	r.put(args[0], v)
	return integer(n)
}

func hdel(r *Redis, args []string) Reply {
	v, bad := r.change(args[0], hash)
	if bad != nil {
		return *bad
	}
	n := 0
	for _, name := range args[1:] {
		if i := v.field(name); i >= 0 {
			v.items = slices.Delete(v.items, i, i+2)
			n++
		}
	}
	r.put(args[0], v)
	return integer(n)
}

func hlen(r *Redis, args []string) Reply { return size(r, args[0], hash, 2) }

// size is how many members a collection has, of which each takes so many items.
func size(r *Redis, key string, s sort, each int) Reply {
	v, bad := r.get(key, s)
	switch {
	case bad != nil:
		return *bad
	case v == nil:
		return integer(0)
	}
	return integer(len(v.items)/each + len(v.members))
}

func hexists(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], hash)
	if bad != nil {
		return *bad
	}
	return flag(v != nil && v.field(args[1]) >= 0)
}

func hincrBy(r *Redis, args []string) Reply {
	n, ok := whole(args[2])
	if !ok {
		return notInteger
	}
	v, bad := r.change(args[0], hash)
	if bad != nil {
		return *bad
	}
	i := v.field(args[1])
	if i < 0 {
		v.items = append(v.items, args[1], "0")
		i = len(v.items) - 2
	}
	old, ok := whole(v.items[i+1])
	if !ok {
		return noHashInt
	}
	v.items[i+1] = strconv.FormatInt(old+n, 10)
	r.put(args[0], v)
	return Reply{Kind: Int, Int: old + n}
}

func hgetAll(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], hash)
	switch {
	case bad != nil:
		return *bad
	case v == nil:
		return Reply{Kind: Array}
	}
	return array(v.items)
}

func hkeys(r *Redis, args []string) Reply {
	if _, bad := r.get(args[0], hash); bad != nil {
		return *bad
	}
	return array(r.Fields(args[0]))
}

func hmget(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], hash)
	if bad != nil {
		return *bad
	}
	a := Reply{Kind: Array}
	for _, name := range args[1:] {
		a.Elems = append(a.Elems, v.fieldReply(name))
	}
	return a
}

func sadd(r *Redis, args []string) Reply {
	v, bad := r.change(args[0], set)
	if bad != nil {
		return *bad
	}
	n := 0
	for _, name := range args[1:] {
		if !slices.Contains(v.items, name) {
			v.items = append(v.items, name)
			n++
		}
	}
	r.put(args[0], v)
	return integer(n)
}

func srem(r *Redis, args []string) Reply {
	v, bad := r.change(args[0], set)
	if bad != nil {
		return *bad
	}
	n := len(v.items)
	v.items = slices.DeleteFunc(v.items, func(it string) bool { return slices.Contains(args[1:], it) })
	n -= len(v.items)
	r.put(args[0], v)
	return integer(n)
}

func sismember(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], set)
	if bad != nil {
		return *bad
	}
	return flag(v != nil && slices.Contains(v.items, args[1]))
}

func smembers(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], set)
	switch {
	case bad != nil:
		return *bad
	case v == nil:
		return Reply{Kind: Array}
	}
	return array(v.items)
}

func scard(r *Redis, args []string) Reply { return size(r, args[0], set, 1) }

func llen(r *Redis, args []string) Reply { return size(r, args[0], list, 1) }

func lindex(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], list)
	i, err := strconv.Atoi(args[1])
	switch {
	case bad != nil:
		return *bad
	case err != nil:
		return notInteger
	case v == nil:
		return none
	}
	if i < 0 {
		i += len(v.items)
	}
	if i < 0 || i >= len(v.items) {
		return none
	}
	return bulk(v.items[i])
}

func lpop(r *Redis, args []string) Reply {
	v, bad := r.change(args[0], list)
	switch {
	case bad != nil:
		return *bad
	case len(v.items) == 0:
		return none
	}
	first := v.items[0]
	v.items = v.items[1:]
	r.put(args[0], v)
	return bulk(first)
}

func rpush(r *Redis, args []string) Reply {
	v, bad := r.change(args[0], list)
	if bad != nil {
		return *bad
	}
	v.items = append(v.items, args[1:]...)
	r.put(args[0], v)
	return integer(len(v.items))
}

// lrem is LREM with a count of 0: all that are equal go.
func lrem(r *Redis, args []string) Reply {
	if args[1] != "0" {
		return syntax
	}
	v, bad := r.change(args[0], list)
	if bad != nil {
		return *bad
	}
	n := len(v.items)
	v.items = slices.DeleteFunc(v.items, func(it string) bool { return it == args[2] })
	n -= len(v.items)
	r.put(args[0], v)
	return integer(n)
}
