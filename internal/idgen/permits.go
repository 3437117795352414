package idgen

import (
	"crypto/sha1"
	"encoding/binary"
	"strings"
	"sync/atomic"
)

// PermitSize is the length of an id: Redisson's are 16 random bytes, and its codec wants as many.
//
// Ours are no less opaque to Java, but not random. They are made from the owner alone, so that
// a request that is sent twice is for the same permits. And they have parts, so that a tool
// that finds 16 bytes in Redis can say which permits were acquired together, and by which
// session:
//
//	4 bytes  of the SHA-1 of the session's id: only told apart among the sessions that live
//	8 bytes  of the SHA-1 of the owner's id, which has the session's id in it
//	4 bytes  the number of the permit, from 0, big-endian
//
// The first two parts are what keeps owners apart: 96 bits across sessions and 64 within one,
// where an owner needs another id only than those that hold permits of the same semaphore.
const (
	PermitSize  = ownerSize + 4
	sessionSize = 4
	ownerSize   = sessionSize + 8
)

// mark is the mark of a session.
type mark struct{ session, mark string }

// marked is the mark that AppendPermits has used last: most processes have one session, and a hash for
// each request is half of what its ids cost.
var marked atomic.Pointer[mark]

// AppendPermits appends the ids of the n permits of an owner.
func AppendPermits(ids []string, owner string, n int) []string {
	session, _ := SessionOfPermit(owner)
	last := marked.Load()
	if last == nil || last.session != session {
		last = &mark{strings.Clone(session), PermitMark(session)}
		marked.Store(last)
	}
	hash := sha1.Sum([]byte(owner))
	id := make([]byte, PermitSize)
	copy(id, last.mark)
	copy(id[sessionSize:ownerSize], hash[:])
	for i := range n {
		binary.BigEndian.PutUint32(id[ownerSize:], uint32(i))
		ids = append(ids, string(id))
	}
	return ids
}

// SessionOfPermit returns the id of the session that has made an owner's id, "<session id>:<number>". ok
// is false for an id of another shape, as a named owner's may be.
func SessionOfPermit(owner string) (id string, ok bool) {
	i := strings.LastIndexByte(owner, ':')
	if i < 1 {
		return "", false
	}
	return owner[:i], true
}

// PermitMark returns what the ids of a session's permits begin with.
func PermitMark(session string) string {
	hash := sha1.Sum([]byte(session))
	return string(hash[:sessionSize])
}

// SplitPermit takes an id apart: the mark of the session, the owner's part, which begins with that mark,
// and the permit's number. ok is false for what has not the length of an id. A random id of
// Redisson comes apart too, with a number that is most likely too high to be one.
func SplitPermit(id string) (mark, owner string, number uint32, ok bool) {
	if len(id) != PermitSize {
		return "", "", 0, false
	}
	return id[:sessionSize], id[:ownerSize], binary.BigEndian.Uint32([]byte(id[ownerSize:])), true
}
