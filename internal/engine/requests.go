package engine

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/idgen"
	"relock/internal/script"
)

// requests identifies commands that no owner stands behind, so that a copy of one can be told
// from another command: each copy counts, unless Redis remembers the request.
//
// A request has a slot, which no other request of the session has as long as it is under way,
// and a number that is higher than those of all requests before it. Redis remembers the last
// request of each slot, in a key for each session and object. A copy with the same number is a
// resend. One with a lower number is late: the call that it belongs to has ended. So what is
// remembered is bounded by how many requests were under way at once, and not by how many there
// were.
type requests struct {
	client string // of this Session value alone: numbers begin anew with each process

	mu    sync.Mutex
	last  uint64
	slots int   // how many there are
	free  []int // those that no request has
}

// begin returns the id of a new request: "<slot>:<number>".
func (r *requests) begin() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := r.slots
	if n := len(r.free); n > 0 {
		slot, r.free = r.free[n-1], r.free[:n-1]
	} else {
		r.slots++
	}
	r.last++
	return strconv.Itoa(slot) + ":" + strconv.FormatUint(r.last, 10)
}

// end says that the outcome of a request is known, or that its caller has stopped asking.
func (r *requests) end(id string) {
	slot, _ := SplitRequest(id)
	n, err := strconv.Atoi(slot)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, n)
}

// SplitRequest returns the two parts of a request's id.
func SplitRequest(id string) (slot, number string) {
	slot, number, _ = strings.Cut(id, ":")
	return slot, number
}

// RequestClient returns what tells the requests of this session from those of others.
func (s *Session) RequestClient() string { return s.requests.client }

// RequestMemory is for how long after its last use Redis keeps the requests of a session: while
// one is sent again, while it is taken back, which is tried for as long, and as long again for
// copies that come late.
func (s *Session) RequestMemory() time.Duration {
	return max(3*Memory, s.cfg.ReleaseTimeout+Memory)
}

// CallOnce is [Handle.Call] for a script that remembers requests: cmd is given the id of one.
func (h *Handle) CallOnce(ctx context.Context, op string, cmd func(id string) script.Command, decode func(rueidis.RedisResult) error) error {
	if h.err != nil {
		return named(op, h.names, h.err)
	}
	id := h.names.s.requests.begin()
	defer h.names.s.requests.end(id)
	return h.Call(ctx, op, cmd(id), decode)
}

// forget ends the request of a claim without a lease: its outcome is known, or was taken back.
// The lock's mutex must be held, unless the claim is over.
func (c *claim) forget() {
	if k := c.prim.Kind(); k.Unleased {
		c.lock.s.requests.end(c.more.ids[k.Side][0])
	}
}

// newID returns the id of a hold, or of a request for what is not leased.
func (s *Session) newID(k *Kind) string {
	if k.Unleased {
		return s.requests.begin()
	}
	return idgen.Request()
}
