// Package waiting has what a session knows of the line of a lock: the format of entries and of the messages to
// their sessions, the session's place in the line, its runs, and the queue of its callers. The line itself
// stands in Redis; line.lua and entry.lua of package script have its layout.
package waiting

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Want is what the caller in front wants, as far as scripts must know it.
type Want struct {
	Session string
	Named   bool   // the owner is named: another process may hold under it
	Slow    bool   // its session reacts slowly to messages: see SlowFor
	Asks    bool   // the entry does not say all that it wants, so it is called instead of granted, and asks
	Fair    bool   // it stands for callers of a fair lock, who are served in their order
	Alone   bool   // fair: for one caller, and no other may join
	Deaf    bool   // fair: its session receives no messages: the answer to a heartbeat says that it has the lock, or may ask
	ID      string // named: of the hold, 32 letters: another caller of that name may stand in the line later
	Writes  bool   // a read-write lock: there are no tokens, and the entry says Away in their place
	Permits int    // how many, of a semaphore or a counter; 0: it is a lock
	Tokens  int    // fencing tokens, fewer than 999, or AsManyAsWait
	// Lease is for how long the lock is granted until the session confirms it, at most 9999 ms.
	Lease time.Duration
	// Life is for how long the session counts as alive after each sign of life.
	Life time.Duration
	// Away is two round trips: for so long the lock is left to it, at least, once it was called. At most 999 ms.
	Away time.Duration
}

// AsManyAsWait is the Tokens of a fair entry that others may join: it gets one for each of its callers.
const AsManyAsWait = 999

// MostGiven is the most permits that an entry may want and be granted by another session's release, which writes each
// of them. Entries for more are called.
const MostGiven = 64

// A Sort is a sort of locks. A message must show which sort of line it comes from.
type Sort uint8

// The sorts, and how many there are.
const (
	OfMutexes Sort = iota
	OfPermits
	OfWriters // of read-write locks
	OfReaders
	Sorts
)

// Head is what stands in front of the owner in an entry.
func (w *Want) Head() string {
	flag, session, n := "g", "", w.Tokens
	ms := func(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
	away := int(min(ms(w.Away), 999))
	switch {
	case w.Permits > MostGiven, w.Permits > 0 && w.Asks:
		return fmt.Sprintf("C%s%s%07d%05d", base36(w.Permits, 5), base36(away, 2), min(ms(w.Life), 9999999), len(w.Session))
	case w.Permits > 0 && w.Slow:
		flag, n = "Q", w.Permits
	case w.Permits > 0:
		flag, n = "P", w.Permits
	case w.Fair && w.Named:
		if flag, session, n = "i", w.Session+w.ID, 0; w.Deaf {
			n = 1
		}
	case w.Fair && w.Deaf:
		flag = "d"
	case w.Fair && w.Asks:
		flag, n = "e", 0
	case w.Fair && w.Alone:
		flag = "h"
	case w.Fair:
		flag = "f"
	case w.Named:
		flag, session, n = "n", w.Session+w.ID, away
	case w.Asks:
		flag, n = "a", away
	case w.Slow:
		flag = "z"
	}
	if w.Writes {
		n = away
	}
	return fmt.Sprintf("%s%03d%04d%07d%05d%s", flag, n, min(ms(w.Lease), 9999), min(ms(w.Life), 9999999), len(w.Session), session)
}

// SaysDeaf reports whether a fair entry says that its session receives no messages.
func SaysDeaf(entry string) bool {
	return entry[0] == 'd' || entry[0] != 'f' && entry[0] != 'h' && entry[1:4] == "001"
}

// base36 writes n, or the most that has room, as so many digits to base 36.
func base36(n, digits int) string {
	most := 1
	for range digits {
		most *= 36
	}
	return strconv.FormatInt(int64(most+min(n, most-1)), 36)[1:]
}

const (
	headLength = 20 // of what every entry begins with
	idLength   = 32 // of a hold's id, see idgen.Request
)

// A Message is a message of a script to the session of an entry.
type Message struct {
	Granted bool          // the entry's owner has the lock; else the session may ask
	After   time.Duration // when it may ask
	At      int64         // granted: by Redis's clock, in ms
	Token   int64         // granted: the highest
	Tokens  int           // granted: how many
	Lease   time.Duration // granted: for how long
	// Granted, of a fair entry: the number of the last caller who is let in, and the position that it had.
	Last, Position int64
	Head           string // what the entry begins with
	Owner          string // the rest of it
	Named          bool   // the owner is named
	ID             string // named: of its hold
	Key            string // of the lock
}

// Parse takes a message apart that is for a session: "granted:<now>:<token>:<tokens>:<last>:<position>:<length
// of entry>:<entry><key>", or "called:<ms>:<length of entry>:<entry><key>". It reports whether the text is
// one.
func Parse(text, session string) (m Message, ok bool) {
	rest, granted := strings.CutPrefix(text, "granted:")
	if !granted {
		if rest, ok = strings.CutPrefix(text, "called:"); !ok {
			return m, false
		}
	}
	var n [6]int64
	first := 4
	if granted {
		first = 0
	}
	for i := first; i < len(n); i++ {
		var number string
		var err error
		number, rest, _ = strings.Cut(rest, ":")
		if n[i], err = strconv.ParseInt(number, 10, 64); err != nil {
			return m, false
		}
	}
	length := n[5]
	if length < headLength || length > int64(len(rest)) {
		return m, false
	}
	entry, key := rest[:length], rest[length:]
	m = Message{Granted: granted, Key: key, Head: entry[:headLength], Owner: entry[headLength:], Named: strings.Contains("nNSi", entry[:1])}
	if granted {
		lease, err := strconv.Atoi(m.Head[4:8])
		if err != nil {
			return m, false
		}
		m.Lease = time.Duration(lease) * time.Millisecond
		m.At, m.Token, m.Tokens, m.Last, m.Position = n[0], n[1], int(n[2]), n[3], n[4]
	} else {
		m.After = time.Duration(n[4]) * time.Millisecond
	}
	if !m.Named {
		return m, true
	}
	if m.Owner, ok = strings.CutPrefix(m.Owner, session); !ok {
		return m, false
	}
	if len(m.Owner) < idLength {
		return m, false
	}
	m.ID, m.Owner = m.Owner[:idLength], m.Owner[idLength:]
	m.Head += session + m.ID
	return m, true
}

// Sort is that of the lock.
func (m *Message) Sort() Sort {
	switch m.Head[0] {
	case 'P', 'Q', 'C':
		return OfPermits
	case 'V', 'U', 'W', 'N':
		return OfWriters
	case 'R', 'S':
		return OfReaders
	default:
		return OfMutexes
	}
}
