package idgen

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Session returns a random session id: a UUID v4, lower case, with dashes,
// which is the shape of a Redisson client id.
func Session() string { return uuid.NewString() }

// SplitOwner takes apart the id of a private owner, "<session id>:<number>". ok is false for an id of another shape.
func SplitOwner(id string) (session string, number uint64, ok bool) {
	i := strings.LastIndexByte(id, ':')
	if i < 1 {
		return "", 0, false
	}
	number, err := strconv.ParseUint(id[i+1:], 10, 64)
	return id[:i], number, err == nil && number > 0
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
