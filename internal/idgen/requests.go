package idgen

import (
	"strconv"
	"strings"
	"sync"
)

// A Requests has the requests of one session that are under way.
//
// A request has a slot, which no other request of the session has as long as it is under way,
// and a number that is higher than those of all requests before it. Redis remembers the last
// request of each slot, in a key for each session and object. A copy with the same number is a
// resend. One with a lower number is late: the call that it belongs to has ended. So what is
// remembered is bounded by how many requests were under way at once, and not by how many there
// were. The zero value is ready for use.
type Requests struct {
	// Client tells the requests of the session from those of others. It is new with each process,
	// since numbers begin anew then.
	Client string

	mu    sync.Mutex
	last  uint64
	slots int   // how many there are
	free  []int // those that no request has
}

// Begin returns the id of a new request: "<slot>:<number>".
func (p *Requests) Begin() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	slot := p.slots
	if n := len(p.free); n > 0 {
		slot, p.free = p.free[n-1], p.free[:n-1]
	} else {
		p.slots++
	}
	p.last++
	return strconv.Itoa(slot) + ":" + strconv.FormatUint(p.last, 10)
}

// End says that the outcome of a request is known, or that its caller has stopped asking.
func (p *Requests) End(id string) {
	slot, _ := SplitRequest(id)
	n, err := strconv.Atoi(slot)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, n)
}

// UnderWay returns how many requests have begun and not ended.
func (p *Requests) UnderWay() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots - len(p.free)
}

// SplitRequest returns the two parts of a request's id.
func SplitRequest(id string) (slot, number string) {
	slot, number, _ = strings.Cut(id, ":")
	return slot, number
}
