// Package idgen makes the identifiers that stand in Redis: session ids, owner
// ids and request ids. Uniqueness is all that anybody relies on; no reader
// ever takes them apart (Redisson's owners are opaque to us and ours to it).
package idgen

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"sync/atomic"

	"github.com/google/uuid"
)

// Session returns a random session id: a UUID v4, lower case, with dashes,
// which is the shape of a Redisson client id.
func Session() string { return uuid.NewString() }

// Owners numbers the owners of one session: "<session id>:<number>", the shape
// of Redisson's "<client id>:<thread id>". Safe for concurrent use.
type Owners struct {
	prefix string
	last   atomic.Uint64
}

// NewOwners returns a generator for the session with the given id, whose first
// owner is number first+1. A session whose id is not random (it may have been
// used by an earlier process, whose holds may still stand in Redis) begins at a
// random place, see [RandomBase], so that it never takes a leftover for its own.
func NewOwners(session string, first uint64) *Owners {
	o := &Owners{prefix: session + ":"}
	o.last.Store(first)
	return o
}

// Next returns an owner id that this generator has not returned before.
func (o *Owners) Next() string {
	var buf [64]byte // enough for a UUID, so that only the string is allocated
	b := append(buf[:0], o.prefix...)
	return string(strconv.AppendUint(b, o.last.Add(1), 10))
}

// RandomBase returns a random starting number that leaves room for 2^52 owners
// and stays an exact integer where numbers are doubles (Lua, JavaScript).
func RandomBase() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails: crypto/rand.Read ends the program instead
	var n uint64
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n >> 12
}

// Request returns an id for one request: 16 random bytes as 32 lower-case hex
// characters, as Redisson's request ids.
func Request() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
