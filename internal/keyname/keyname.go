// Package keyname builds the names of the keys and channels that belong to one
// lock, exactly as Redisson builds them, and keeps them in one hash slot.
//
// Redisson puts braces around a name unless the name has a "{" anywhere. For a
// few odd names ("a}b", "a{b", "{}x") that rule lands in another slot than the
// name itself, and Redisson's own scripts fail there with CROSSSLOT in a
// Cluster. No Java client can use such a name in a Cluster, so the names of
// this package may differ there: they lead with a tag of the right slot.
package keyname

import (
	"strconv"
	"strings"
	"sync"
)

// slots is the number of hash slots of a Redis Cluster.
const slots = 1 << 14

// Style is how names are built for one deployment.
type Style struct {
	// Cluster says that all names of a lock must share a hash slot. Outside a
	// Cluster Redisson's rule is followed to the letter for every name.
	Cluster bool
}

// own is what the prefixes begin with of keys and channels that Redisson does not have.
const own = "relock_"

// Prefix returns prefix:tag(name), Redisson's rule A. That is the same for x and {x}, which are two locks: in names of
// our own the latter has a colon more behind it, and so has each name that would be taken for one of these then.
func (s Style) Prefix(prefix, name string) string {
	if strings.HasPrefix(name, "{") && strings.HasPrefix(prefix, own) && TagAlone(name) {
		return prefix + ":" + s.tag(name) + ":"
	}
	return prefix + ":" + s.tag(name)
}

// TagAlone reports whether a name is another one in braces, with any number of colons behind them.
func TagAlone(name string) bool {
	return strings.LastIndexByte(name, '{') == 0 && strings.HasSuffix(strings.TrimRight(name, ":"), "}")
}

// Suffix returns tag(name):suffix, Redisson's rule B.
func (s Style) Suffix(name, suffix string) string { return s.tag(name) + ":" + suffix }

func (s Style) tag(name string) string {
	tagged := name
	if !strings.Contains(name, "{") {
		tagged = "{" + name + "}"
	}
	// A derived name shares the slot only through a tag of its own that hashes
	// as name does: a name without one ("a{b", "{}x") is hashed whole.
	if tag := hashTag(tagged); s.Cluster && (tag == tagged || tag != hashTag(name)) {
		return "{" + slotTags()[Slot(name)] + "}" + name
	}
	return tagged
}

// Slot returns the hash slot of key, by the rule of the Redis Cluster
// specification: CRC16 (XMODEM) of the hash tag, or of the whole key.
func Slot(key string) int {
	return int(crc16(hashTag(key))) % slots
}

// hashTag returns the part of key that is hashed: what stands between the first
// "{" and the first "}" behind it, or all of key if that is missing or empty.
func hashTag(key string) string {
	open := strings.IndexByte(key, '{')
	if open < 0 {
		return key
	}
	end := strings.IndexByte(key[open+1:], '}')
	if end <= 0 {
		return key
	}
	return key[open+1 : open+1+end]
}

func crc16(s string) uint16 {
	var crc uint16
	for i := 0; i < len(s); i++ {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// slotTags returns a short text for each slot. The table is made at the first
// odd name and takes a few milliseconds; ordinary names never need it.
var slotTags = sync.OnceValue(func() *[slots]string {
	var tags [slots]string
	for i, found := 0, 0; found < slots; i++ {
		t := strconv.FormatInt(int64(i), 36)
		if n := Slot(t); tags[n] == "" {
			tags[n], found = t, found+1
		}
	}
	return &tags
})
