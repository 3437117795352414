package memredis

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what a [Reply] is.
type Kind uint8

// The kinds of replies.
const (
	Nil Kind = iota
	Int
	Bulk
	Status
	Array
	Error
)

// Reply is the reply to a command.
type Reply struct {
	Kind  Kind
	Int   int64
	Text  string
	Elems []Reply
}

var (
	wrongType  = Reply{Kind: Error, Text: "WRONGTYPE Operation against a key holding the wrong kind of value"}
	notInteger = Reply{Kind: Error, Text: "ERR value is not an integer or out of range"}
	noHashInt  = Reply{Kind: Error, Text: "ERR hash value is not an integer"}
	overflow   = Reply{Kind: Error, Text: "ERR increment or decrement would overflow"}
	notFloat   = Reply{Kind: Error, Text: "ERR value is not a valid float"}
	noRange    = Reply{Kind: Error, Text: "ERR min or max is not a float"}
	syntax     = Reply{Kind: Error, Text: "ERR syntax error"}
	okay       = Reply{Kind: Status, Text: "OK"}
	none       = Reply{}
)

func integer(n int) Reply { return Reply{Kind: Int, Int: int64(n)} }

func bulk(s string) Reply { return Reply{Kind: Bulk, Text: s} }

func array(items []string) Reply {
	a := Reply{Kind: Array}
	for _, it := range items {
		a.Elems = append(a.Elems, bulk(it))
	}
	return a
}

func flag(b bool) Reply {
	if b {
		return integer(1)
	}
	return integer(0)
}

// String is the reply in one line.
func (r Reply) String() string {
	switch r.Kind {
	case Int:
		return strconv.FormatInt(r.Int, 10)
	case Bulk:
		return strconv.Quote(r.Text)
	case Status:
		return r.Text
	case Error:
		return "error " + r.Text
	case Array:
		parts := make([]string, len(r.Elems))
		for i, e := range r.Elems {
			parts[i] = e.String()
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "nil"
}

// Numbers are the integers of a reply: one, or those that an array begins with. Texts may follow.
func (r Reply) Numbers() ([]int64, error) {
	if r.Kind == Int {
		return []int64{r.Int}, nil
	}
	if r.Kind != Array || len(r.Elems) == 0 || r.Elems[0].Kind != Int {
		return nil, fmt.Errorf("%v are no integers", r)
	}
	n := make([]int64, 0, len(r.Elems))
	for _, e := range r.Elems {
		if e.Kind != Int {
			break
		}
		n = append(n, e.Int)
	}
	return n, nil
}
