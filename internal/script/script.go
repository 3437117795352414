// Package script sends Lua scripts to Redis and says what is known when no answer comes.
//
// A script is sent by its SHA-1, and whole when the server answers that it does not know it. So
// the first use of a script in a server's life takes two round trips, whichever session makes it:
// after a restart, after a failover, after SCRIPT FLUSH. No session tells a server scripts in
// advance. That would send the scripts of all kinds of lock (200 kB) to each node at every start,
// mostly to servers that know them, and would not help with a server that starts later.
//
// The second round trip is within the bounds of the call, and costs nothing but time. Trust in a
// lock counts from before the first one. A caller whose context ends between the two sends
// nothing more. Nothing that was executed is executed again, but for the commands that
// [Runner.Replicated] sends.
//
// A script that writes is never sent again by this package for want of an answer: the caller
// decides, with the help of [Classify], whether a second run is wanted.
package script

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// Script is one Lua script.
type Script struct {
	src, sha string       // for pipelines
	alone    *rueidis.Lua // sends one command
}

// New makes a script. Packages call it once for each script, in a variable.
func New(src string) *Script {
	sum := sha1.Sum([]byte(src))
	return &Script{src: src, sha: hex.EncodeToString(sum[:]), alone: rueidis.NewLuaScript(src)}
}

// Source returns the Lua of the script, as it is sent.
func (sc *Script) Source() string { return sc.src }

// SHA is the SHA-1 of that, in hex digits, by which servers know the script.
func (sc *Script) SHA() string { return sc.sha }

// Command is one call of a script. All keys must be in one hash slot.
type Command struct {
	Script     *Script
	Keys, Args []string
	// Fewer makes the command that is sent where Redis does not serve the keys together, since their slot
	// moves, or does not let this user at all of them: one with fewer keys. nil: there is none.
	Fewer func(Command) Command
	// Parted is called before Fewer, if the slot moves: what the other keys have stays as it is. nil: nothing is.
	Parted func()

	behind bool // see Runner.InOrder
}

// fewer returns the command that is sent in place of one that Redis has refused with err.
func (c Command) fewer(err error) Command {
	if c.Parted != nil && IsTryAgain(err) {
		c.Parted()
	}
	return c.Fewer(c)
}

// Numbers appends the elements of a reply to buf, which may be on the caller's stack: the
// replies of scripts are short, and there is one for each operation. A single number counts
// as a reply of one element: a table costs Redis a good part of what a short script does. The element at
// place, from 0 on, may be a text if it is there, which is returned apart; below 0 none may.
func Numbers(buf []int64, r rueidis.RedisResult, place int) (numbers []int64, text string, err error) {
	m, err := r.ToMessage()
	if err != nil {
		return nil, "", err
	}
	if m.IsInt64() {
		n, err := m.AsInt64()
		return append(buf, n), "", err
	}
	elements, err := m.ToArray()
	if err != nil {
		return nil, "", err
	}
	for i := range elements {
		if i == place && elements[i].IsString() {
			if text, err = elements[i].ToString(); err != nil {
				return nil, "", err
			}
			continue
		}
		n, err := elements[i].AsInt64()
		if err != nil {
			return nil, "", err
		}
		buf = append(buf, n)
	}
	return buf, text, nil
}

// Itoa formats an integer for a script argument.
func Itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Millis formats a duration for a script argument: whole milliseconds, rounded up, so that
// a lease in Redis is never shorter than what was asked for.
func Millis(d time.Duration) string {
	if s := d / time.Second; d == s*time.Second && 0 <= s && int(s) < len(seconds) {
		return seconds[s]
	}
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return Itoa(ms)
}

// seconds are the texts of the leases that are most likely, so that a command need not make
// its own.
var seconds = func() (texts [61]string) {
	for s := range texts {
		texts[s] = Itoa(int64(s) * 1000)
	}
	return texts
}()

// Flag formats a bool for a script argument.
func Flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
