package memredis

import (
	"strconv"
	"strings"
)

// A command is how one is executed. min is how many arguments it has at least; max, if it is not 0, at most.
type command struct {
	min, max int
	run      func(r *Redis, args []string) Reply
}

var commands map[string]command

func init() {
	commands = map[string]command{
		"DEL": {1, 0, del}, "EXISTS": {1, 0, exists}, "TIME": {0, 0, clock},
		"PTTL": {1, 1, pttl}, "PEXPIRE": {2, 2, pexpire}, "PERSIST": {1, 1, persist},
		"PUBLISH": {2, 2, publish}, "SPUBLISH": {2, 2, publish}, "PUBSUB": {1, 0, pubsub},
		"GET": {1, 1, get}, "SET": {2, 4, setString}, "INCRBY": {2, 2, incrBy}, "DECRBY": {2, 2, decrBy},
	}
	for _, more := range []map[string]command{hashCommands, setCommands, listCommands, zsetCommands} {
		for name, c := range more {
			commands[name] = c
		}
	}
}

// Do executes a command.
func (r *Redis) Do(args ...string) Reply {
	if len(args) == 0 {
		return Reply{Kind: Error, Text: "ERR Please specify at least one argument for this redis.call() call"}
	}
	name := args[0]
	c, ok := commands[name]
	if !ok {
		name = strings.ToUpper(name)
		c, ok = commands[name]
	}
	switch n := len(args) - 1; {
	case !ok:
		return Reply{Kind: Error, Text: "ERR unknown command '" + args[0] + "'"}
	case n < c.min || c.max != 0 && n > c.max || name == "TIME" && n > 0:
		return Reply{Kind: Error, Text: "ERR wrong number of arguments for '" + strings.ToLower(name) + "' command"}
	}
	return c.run(r, args[1:])
}

func del(r *Redis, args []string) Reply {
	n := 0
	for _, key := range args {
		if r.Delete(key) {
			n++
		}
	}
	return integer(n)
}

func exists(r *Redis, args []string) Reply {
	n := 0
	for _, key := range args {
		if r.Exists(key) {
			n++
		}
	}
	return integer(n)
}

func clock(r *Redis, _ []string) Reply {
	return array([]string{strconv.FormatInt(r.us/1e6, 10), strconv.FormatInt(r.us%1e6, 10)})
}

func pttl(r *Redis, args []string) Reply {
	i, ok := r.find(args[0])
	switch {
	case !ok:
		return integer(-2)
	case r.keys[i].end == 0:
		return integer(-1)
	}
	return Reply{Kind: Int, Int: r.keys[i].end - r.Millis()}
}

func pexpire(r *Redis, args []string) Reply {
	ms, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return notInteger
	}
	i, ok := r.find(args[0])
	switch {
	case !ok:
		return integer(0)
	case ms <= 0:
		r.Delete(args[0])
	default:
		r.keys[i].end = r.Millis() + ms
	}
	return integer(1)
}

func persist(r *Redis, args []string) Reply {
	i, ok := r.find(args[0])
	if !ok || r.keys[i].end == 0 {
		return integer(0)
	}
	r.keys[i].end = 0
	return integer(1)
}

func (r *Redis) listeners(channel string) int {
	if r.Listeners == nil {
		return 0
	}
	return r.Listeners(channel)
}

func publish(r *Redis, args []string) Reply {
	r.Published = append(r.Published, Message{args[0], args[1]})
	return integer(r.listeners(args[0]))
}

func pubsub(r *Redis, args []string) Reply {
	if sub := strings.ToUpper(args[0]); sub != "NUMSUB" && sub != "SHARDNUMSUB" {
		return Reply{Kind: Error, Text: "ERR unknown subcommand '" + args[0] + "'"}
	}
	a := Reply{Kind: Array}
	for _, channel := range args[1:] {
		a.Elems = append(a.Elems, bulk(channel), integer(r.listeners(channel)))
	}
	return a
}

func get(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], text)
	switch {
	case bad != nil:
		return *bad
	case v == nil:
		return none
	}
	return bulk(v.text)
}

// setString is SET key value [PX ms | KEEPTTL].
func setString(r *Redis, args []string) Reply {
	ms := int64(0)
	switch {
	case len(args) == 3 && strings.EqualFold(args[2], "KEEPTTL"):
		if i, ok := r.find(args[0]); ok {
			r.keys[i].val = &value{sort: text, text: args[1]}
			return okay
		}
	case len(args) > 2:
		if len(args) != 4 || !strings.EqualFold(args[2], "PX") {
			return syntax
		}
		var err error
		if ms, err = strconv.ParseInt(args[3], 10, 64); err != nil {
			return notInteger
		}
		if ms <= 0 {
			return Reply{Kind: Error, Text: "ERR invalid expire time in 'set' command"}
		}
	}
	r.Delete(args[0])
	r.put(args[0], &value{sort: text, text: args[1]})
	if ms > 0 {
		i, _ := r.find(args[0])
		r.keys[i].end = r.Millis() + ms
	}
	return okay
}

// whole reads an integer as strictly as Redis.
func whole(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

func incrBy(r *Redis, args []string) Reply { return add(r, args[0], args[1], 1) }

func decrBy(r *Redis, args []string) Reply { return add(r, args[0], args[1], -1) }

func add(r *Redis, key, by string, sign int64) Reply {
	n, ok := whole(by)
	if !ok {
		return notInteger
	}
	v, bad := r.change(key, text)
	if bad != nil {
		return *bad
	}
	old := int64(0)
	if v.text != "" || r.Exists(key) {
		if old, ok = whole(v.text); !ok {
			return notInteger
		}
	}
	sum := old + sign*n
	if (sum > old) != (sign*n > 0) && n != 0 {
		return overflow
	}
	v.text = strconv.FormatInt(sum, 10)
	r.put(key, v)
	return Reply{Kind: Int, Int: sum}
}
