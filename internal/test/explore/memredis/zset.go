package memredis

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

var zsetCommands = map[string]command{
	"ZADD": {3, 0, zadd}, "ZREM": {2, 0, zrem}, "ZCARD": {1, 1, zcard}, "ZSCORE": {2, 2, zscore}, "ZMSCORE": {2, 0, zmscore},
	"ZCOUNT": {3, 3, zcount}, "ZINCRBY": {3, 3, zincrBy},
	"ZRANGE": {3, 4, zrange}, "ZREVRANGE": {3, 4, zrevrange},
	"ZRANGEBYSCORE": {3, 7, zrangeByScore}, "ZREVRANGEBYSCORE": {3, 7, zrevrangeByScore}, "ZREMRANGEBYSCORE": {3, 3, zremRangeByScore},
}

func (v *value) member(name string) int {
	return slices.IndexFunc(v.members, func(m Member) bool { return m.Name == name })
}

func (v *value) sorted() {
	slices.SortFunc(v.members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), strings.Compare(a.Name, b.Name))
	})
}

// formatScore writes a score as Redis does.
func formatScore(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// zadd is ZADD key [LT|GT|XX|NX] score member ...
func zadd(r *Redis, args []string) Reply {
	rest, how := args[1:], ""
	switch up := strings.ToUpper(rest[0]); up {
	case "LT", "GT", "XX", "NX":
		rest, how = rest[1:], up
	}
	if len(rest) == 0 || len(rest)%2 != 0 {
		return syntax
	}
	scores := make([]float64, 0, 4)
	for i := 0; i < len(rest); i += 2 {
		f, err := strconv.ParseFloat(rest[i], 64)
		if err != nil || math.IsNaN(f) {
			return notFloat
		}
		scores = append(scores, f)
	}
	v, bad := r.change(args[0], zset)
	if bad != nil {
		return *bad
	}
	added := 0
	for i, score := range scores {
		name := rest[2*i+1]
		switch at := v.member(name); {
		case at < 0 && how != "XX":
			v.members = append(v.members, Member{name, score})
			added++
		case at < 0 || how == "NX", how == "LT" && score >= v.members[at].Score, how == "GT" && score <= v.members[at].Score:
		default:
			v.members[at].Score = score
		}
	}
	v.sorted()
	r.put(args[0], v)
	return integer(added)
}

func zincrBy(r *Redis, args []string) Reply {
	by, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return notFloat
	}
	v, bad := r.change(args[0], zset)
	if bad != nil {
		return *bad
	}
	at := v.member(args[2])
	if at < 0 {
		v.members = append(v.members, Member{args[2], 0})
		at = len(v.members) - 1
	}
	v.members[at].Score += by
	score := v.members[at].Score
	v.sorted()
	r.put(args[0], v)
	return bulk(formatScore(score))
}

func zrem(r *Redis, args []string) Reply {
	v, bad := r.change(args[0], zset)
	if bad != nil {
		return *bad
	}
	n := len(v.members)
	v.members = slices.DeleteFunc(v.members, func(m Member) bool { return slices.Contains(args[1:], m.Name) })
	n -= len(v.members)
	r.put(args[0], v)
	return integer(n)
}

func zcard(r *Redis, args []string) Reply { return size(r, args[0], zset, 1) }

func (v *value) score(name string) Reply {
	if v != nil {
		if at := v.member(name); at >= 0 {
			return bulk(formatScore(v.members[at].Score))
		}
	}
	return none
}

func zscore(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], zset)
	if bad != nil {
		return *bad
	}
	return v.score(args[1])
}

func zmscore(r *Redis, args []string) Reply {
	v, bad := r.get(args[0], zset)
	if bad != nil {
		return *bad
	}
	a := Reply{Kind: Array}
	for _, name := range args[1:] {
		a.Elems = append(a.Elems, v.score(name))
	}
	return a
}

// A bound is one end of a range of scores.
type bound struct {
	score float64
	open  bool
}

func parseBound(s string) (b bound, ok bool) {
	s, b.open = strings.CutPrefix(s, "(")
	var err error
	b.score, err = strconv.ParseFloat(s, 64)
	return b, err == nil && !math.IsNaN(b.score)
}

// between returns the members from one bound to the other.
func (v *value) between(low, high bound) []Member {
	if v == nil {
		return nil
	}
	var in []Member
	for _, m := range v.members {
		if (m.Score > low.score || m.Score == low.score && !low.open) && (m.Score < high.score || m.Score == high.score && !high.open) {
			in = append(in, m)
		}
	}
	return in
}

// bounded looks up the members of a key between two bounds.
func bounded(r *Redis, key, low, high string) ([]Member, *Reply) {
	from, ok := parseBound(low)
	to, ok2 := parseBound(high)
	if !ok || !ok2 {
		return nil, &noRange
	}
	v, bad := r.get(key, zset)
	if bad != nil {
		return nil, bad
	}
	return v.between(from, to), nil
}

func zcount(r *Redis, args []string) Reply {
	in, bad := bounded(r, args[0], args[1], args[2])
	if bad != nil {
		return *bad
	}
	return integer(len(in))
}

func zremRangeByScore(r *Redis, args []string) Reply {
	in, bad := bounded(r, args[0], args[1], args[2])
	if bad != nil {
		return *bad
	}
	if len(in) == 0 {
		return integer(0)
	}
	names := []string{args[0]}
	for _, m := range in {
		names = append(names, m.Name)
	}
	return zrem(r, names)
}

func zrangeByScore(r *Redis, args []string) Reply { return byScore(r, args, args[1], args[2], false) }

func zrevrangeByScore(r *Redis, args []string) Reply { return byScore(r, args, args[2], args[1], true) }

// byScore takes the options WITHSCORES and LIMIT offset count behind three arguments.
func byScore(r *Redis, args []string, low, high string, back bool) Reply {
	scores, offset, count := false, 0, -1
	for rest := args[3:]; len(rest) > 0; {
		switch up := strings.ToUpper(rest[0]); {
		case up == "WITHSCORES":
			scores, rest = true, rest[1:]
		case up == "LIMIT" && len(rest) >= 3:
			var err, err2 error
			offset, err = strconv.Atoi(rest[1])
			count, err2 = strconv.Atoi(rest[2])
			if err != nil || err2 != nil {
				return notInteger
			}
			rest = rest[3:]
		default:
			return syntax
		}
	}
	in, bad := bounded(r, args[0], low, high)
	if bad != nil {
		return *bad
	}
	if back {
		slices.Reverse(in)
	}
	in = in[min(max(offset, 0), len(in)):]
	if count >= 0 {
		in = in[:min(count, len(in))]
	}
	return members(in, scores)
}

func members(in []Member, scores bool) Reply {
	a := Reply{Kind: Array}
	for _, m := range in {
		a.Elems = append(a.Elems, bulk(m.Name))
		if scores {
			a.Elems = append(a.Elems, bulk(formatScore(m.Score)))
		}
	}
	return a
}

func zrange(r *Redis, args []string) Reply { return byRank(r, args, false) }

func zrevrange(r *Redis, args []string) Reply { return byRank(r, args, true) }

func byRank(r *Redis, args []string, back bool) Reply {
	from, err := strconv.Atoi(args[1])
	to, err2 := strconv.Atoi(args[2])
	switch {
	case err != nil || err2 != nil:
		return notInteger
	case len(args) == 4 && !strings.EqualFold(args[3], "WITHSCORES"):
		return syntax
	}
	v, bad := r.get(args[0], zset)
	if bad != nil {
		return *bad
	}
	if v == nil {
		return Reply{Kind: Array}
	}
	n := len(v.members)
	if from < 0 {
		from = max(0, from+n)
	}
	if to < 0 {
		to += n
	}
	to = min(to, n-1)
	if from > to {
		return Reply{Kind: Array}
	}
	in := v.members
	if back {
		in = slices.Clone(in)
		slices.Reverse(in)
	}
	return members(in[from:to+1], len(args) == 4)
}
