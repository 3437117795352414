package scriptfuzz

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A shape tells what is wrong with a reply that is no error; "": nothing.
type shape func(reply any) string

// withOwner is the shape of at most four integers; an owner may follow, and then one more.
func withOwner(reply any) string {
	if all, ok := reply.([]any); ok && len(all) > 4 {
		if _, ok := all[4].(string); !ok {
			return fmt.Sprintf("%v is no owner", all[4])
		}
		reply = append(slices.Clone(all[:4]), all[5:]...)
		return numbers(4, 5)(reply)
	}
	return numbers(1, 4)(reply)
}

// numbers is the shape of a list of so many integers. One integer may stand for a list of one.
func numbers(least, most int) shape {
	return func(reply any) string {
		all, ok := reply.([]any)
		if !ok {
			all = []any{reply}
		}
		for _, v := range all {
			if _, ok := v.(int64); !ok {
				return fmt.Sprintf("%v is no integer", v)
			}
		}
		if len(all) < least || len(all) > most {
			return fmt.Sprintf("%d integers, want %d to %d", len(all), least, most)
		}
		return ""
	}
}

// texts is the shape of a list of strings.
func texts(reply any) string {
	all, ok := reply.([]any)
	for _, v := range all {
		_, isText := v.(string)
		ok = ok && isText
	}
	if !ok && reply != nil {
		return "not strings"
	}
	return ""
}

func text(reply any) string {
	if _, ok := reply.(string); !ok {
		return "no string"
	}
	return ""
}

// digits is the shape of an integer that is written out.
func digits(reply any) string {
	s, _ := reply.(string)
	if _, err := strconv.ParseInt(s, 10, 64); err != nil {
		return fmt.Sprintf("no digits: %v", err)
	}
	return ""
}

// anything is the shape of a list.
func anything(reply any) string {
	if _, ok := reply.([]any); !ok && reply != nil {
		return "no list"
	}
	return ""
}

// A judgement is of one run of a script.
type judgement struct {
	row           *scriptRow
	keys          []key
	argv          []string
	reply         any
	before, after map[string]image
	exact         bool // no time has passed in between
}

// fault says what must not be; "": nothing.
func (j *judgement) fault() string {
	if err, ok := j.reply.(error); ok {
		return j.refusal(err.Error())
	}
	if what := j.row.reply(j.reply); what != "" {
		return "the reply has another shape: " + what
	}
	roles := map[string]*role{}
	for _, k := range j.keys {
		roles[k.name] = k.role
		was, there := j.before[k.name]
		if there && !k.role.helper && len(k.role.types) > 0 && !slices.Contains(k.role.types, was.kind) && j.changed(k.name) {
			return fmt.Sprintf("it has changed %q, which is no %s", k.name, k.role.name)
		}
	}
	for name, is := range j.after {
		r, was := roles[name], j.before[name]
		switch {
		case r == nil && isTimeout(name):
			r = timeoutRole
		case r == nil:
			return fmt.Sprintf("it has written %q, which it does not name", name)
		}
		if is.ttl == "-1" && r.ends && was.ttl != "-1" {
			return fmt.Sprintf("it leaves %q, the %s, without an end", name, r.name)
		}
	}
	if j.row.leaves && j.noLock() && j.changed("x") {
		return `it has changed "x", which is no lock`
	}
	if what := j.gives(); what != "" {
		return what
	}
	return j.lives()
}

// count matches the holds of a lock that has one owner.
var count = regexp.MustCompile(`" "[1-9][0-9]*"\]$`)

// noLock reports whether a hash was at the lock's key that is no lock: see no_lock.lua.
func (j *judgement) noLock() bool {
	was := j.before["x"]
	mode := strings.Contains(was.holds, `["mode" "read"]`) || strings.Contains(was.holds, `["mode" "write"]`)
	return was.kind == "hash" && (was.ttl == "-1" || !mode && (was.size != 2 || !count.MatchString(was.holds)))
}

// gives says whether an owner to whom the script has given the lock has it for another time than its entry says.
func (j *judgement) gives() string {
	was, is := j.before["x"], j.after["x"]
	if j.row.grants != nil || is.kind != "hash" {
		return ""
	}
	for _, owner := range []string{"S1:1", "S1:2", "S1:30", "S2:1", "S2:2", "S2:30", "a:b:1", "a:b:2", "a:b:30"} {
		for _, field := range []string{`["` + owner + `" `, `["` + owner + `:write" `} {
			if strings.Contains(is.holds, field) && !strings.Contains(was.holds, field) && is.ttl != given && j.exact {
				return fmt.Sprintf("it has given the lock to %s for %s ms, want %s", owner, is.ttl, given)
			}
		}
	}
	return ""
}

// refusal says what is wrong with an answer that is an error.
func (j *judgement) refusal(err string) string {
	legal := strings.Contains(err, "WRONGTYPE")
	for _, e := range j.row.errs {
		legal = legal || strings.HasPrefix(err, e)
	}
	if !legal {
		return "it has thrown: " + err
	}
	if j.row.purges && j.total(j.before) == j.total(j.after) {
		return ""
	}
	roles := map[string]string{}
	for _, k := range j.keys {
		roles[k.name] = k.role.name
	}
	for _, name := range slices.Sorted(maps.Keys(both(j.before, j.after))) {
		vain := j.row.vain != "" && strings.Contains(err, j.row.vain) && (roles[name] == "line" || roles[name] == "lock" && j.before[name].kind == "")
		if j.changed(name) && !vain {
			return fmt.Sprintf("it has refused, and changed %q", name)
		}
	}
	return ""
}

// changed reports whether a key is not what it was.
func (j *judgement) changed(name string) bool {
	was, is := j.before[name], j.after[name]
	if !j.exact && was.ttl != "-1" && is.ttl != "-1" {
		is.ttl = was.ttl
	}
	return is != was
}

func both(a, b map[string]image) map[string]image {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// total is how many permits a semaphore has, free and taken; with everything that stands at other keys.
func (j *judgement) total(all map[string]image) string {
	var b strings.Builder
	n := int64(0)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch {
		case name == "x" && all[name].kind == "string":
			free, err := strconv.ParseInt(strings.Trim(all[name].holds, `"`), 10, 64)
			if err != nil {
				return all[name].holds
			}
			n += free
		case name == "{x}:timeout" && all[name].kind == "zset":
			if _, there := all["x"]; there { // else there is nothing that they could come back to
				n += int64(all[name].size) / 2
			}
		default:
			is := all[name]
			if !j.exact && is.ttl != "-1" {
				is.ttl = ""
			}
			fmt.Fprint(&b, name, is)
		}
	}
	return fmt.Sprint(n, b.String())
}

// granted reports whether the reply is 1, or begins with it.
func (j *judgement) granted() bool {
	if all, ok := j.reply.([]any); ok && len(all) > 0 {
		return all[0] == int64(1)
	}
	return j.reply == int64(1)
}

// lives says whether what was granted ends too soon.
func (j *judgement) lives() string {
	if j.row.grants == nil || !j.granted() {
		return ""
	}
	for _, k := range j.keys {
		if k.role != j.row.grants {
			continue
		}
		ttl, _ := strconv.ParseInt(j.after[k.name].ttl, 10, 64)
		lease, _ := strconv.ParseInt(j.argv[1], 10, 64)
		if j.exact && ttl < lease || ttl == -1 {
			return fmt.Sprintf("it has granted %q for %d ms, and that ends in %d", k.name, lease, ttl)
		}
	}
	return ""
}
