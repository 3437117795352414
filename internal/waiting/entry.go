// Package waiting is what a session knows of the line of a lock: how its entry is written, what scripts
// say to the session that it belongs to, and what that session remembers of its place. The line itself
// stands in Redis; line.lua of package script has its layout.
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
	Named   bool // the owner is named: another process may hold under it
	Slow    bool // its session takes long to follow a message: see SlowFor
	Asks    bool // the lock cannot be given to it, for there is more to say: it is called, and asks
	Tokens  int  // fencing tokens, at most 999
	// Lease is for how long the lock is given before the session is heard of, at most 9999 ms.
	Lease time.Duration
	// Life is for how long the session counts as alive after each sign of life.
	Life time.Duration
}

// Head is what stands in front of the owner in an entry.
func (w *Want) Head() string {
	flag, session := "g", ""
	switch {
	case w.Named:
		flag, session = "n", w.Session
	case w.Asks:
		flag = "a"
	case w.Slow:
		flag = "z"
	}
	ms := func(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
	return fmt.Sprintf("%s%03d%04d%07d%05d%s", flag, w.Tokens, min(ms(w.Lease), 9999), min(ms(w.Life), 9999999), len(w.Session), session)
}

// headLength is that of what every entry begins with.
const headLength = 20

// A Message is what a script says to the session of an entry.
type Message struct {
	Granted bool          // the entry's owner has the lock; else the session may ask
	After   time.Duration // when it may ask
	At      int64         // granted: by Redis's clock, in ms
	Token   int64         // granted: the highest
	Tokens  int           // granted: how many
	Head    string        // what the entry begins with
	Owner   string        // the rest of it
	Key     string        // of the lock
}

// Parse takes a message apart that is for a session: "granted:<now>:<token>:<tokens>:<length of
// entry>:<entry><key>", or "called:<ms>:<length of entry>:<entry><key>". It reports whether the text is
// one.
func Parse(text, session string) (m Message, ok bool) {
	rest, granted := strings.CutPrefix(text, "granted:")
	if !granted {
		if rest, ok = strings.CutPrefix(text, "called:"); !ok {
			return m, false
		}
	}
	var n [4]int64
	first := 2
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
	length := n[3]
	if length < headLength || length > int64(len(rest)) {
		return m, false
	}
	entry, key := rest[:length], rest[length:]
	m = Message{Granted: granted, Key: key, Head: entry[:headLength], Owner: entry[headLength:]}
	if granted {
		m.At, m.Token, m.Tokens = n[0], n[1], int(n[2])
	} else {
		m.After = time.Duration(n[2]) * time.Millisecond
	}
	if entry[0] == 'n' {
		if m.Owner, ok = strings.CutPrefix(m.Owner, session); !ok {
			return m, false
		}
		m.Head += session
	}
	return m, true
}
