package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/script"
)

// The kinds of lock, as they are printed.
const (
	kindMutex     = "mutex"
	kindRW        = "rwlock"
	kindSemaphore = "semaphore"
	kindCounter   = "counter"
	kindElection  = "election"
	kindLatch     = "latch"
)

// someOwners is how many owners of one lock a sample reads: a read lock may have thousands.
const someOwners = 16

// Lock is a lock as Redis has it, as it is printed.
type Lock struct {
	Name  string  `json:"name"`
	Kind  string  `json:"kind"`
	Mode  string  `json:"mode,omitempty"`   // of a rwlock: read or write
	TTL   int64   `json:"ttl_ms"`           // what is left of the longest lease; 0: free
	Count int     `json:"owners_count"`     // how many owners there are
	Owner []Owner `json:"owners"`           // some of them, or all
	Free  *int64  `json:"free,omitempty"`   // of a semaphore or counter: free permits
	Limit *int64  `json:"limit,omitempty"`  // of a semaphore
	Left  *int64  `json:"count,omitempty"`  // of a latch: what it has to be counted down
	Token int64   `json:"token,omitempty"`  // the highest fencing token drawn
	Wait  int64   `json:"waiting_sessions"` // subscribers of the lock's channel, without those in the line
	Line  int     `json:"line"`             // callers in the line
	Fair  bool    `json:"fair"`             // the first of them waits for a fair lock

	Leader *Leader `json:"leader,omitempty"` // of an election, as far as it was published

	look
}

// A look is how a lock was seen, which is not printed as it is.
type look struct {
	now    int64 // Redis's time, in ms
	seen   int64 // for how many ms top has seen this owner
	denied error // the ACL does not let this user read it
	exists bool  // its key does
}

// Owner is one that holds a lock.
type Owner struct {
	ID      string   `json:"owner"`
	Holds   int64    `json:"holds"`
	TTL     int64    `json:"ttl_ms,omitempty"` // of permits, which have leases of their own
	Process *process `json:"process,omitempty"`
	Least   int64    `json:"held_at_least_ms,omitempty"` // see since; 0: not known
	Most    int64    `json:"held_at_most_ms,omitempty"`
	Kept    bool     `json:"may_be_kept,omitempty"` // its session may keep the lock, with or without a section

	mark string // of permits: that of the session, or ""
}

// errOther says that a key is no lock.
func errOther(name, kind string) error {
	return fmt.Errorf("the key %q is no lock: it is a %s of another program", name, kind)
}

// held reports whether there is an owner.
func (l *Lock) held() bool { return l.Count > 0 }

// signature changes when the lock passes to another owner.
func (l *Lock) signature() string {
	ids := make([]string, len(l.Owner))
	for i, o := range l.Owner {
		ids[i] = o.ID
	}
	slices.Sort(ids)
	return strings.Join(ids, "\x00")
}

// waiters is how many sessions wait, and callers in the line, as far as can be counted.
func (l *Lock) waiters() int64 { return l.Wait + int64(l.Line) }

// perLock is how many commands read sends for a name.
const perLock = 6

// read looks at locks by name, in one batch of commands that are O(1), or bounded by
// someOwners. What is no lock, or free, comes back with an empty kind.
func (s *server) read(ctx context.Context, names []string) ([]*Lock, error) {
	if len(names) == 0 {
		return nil, nil
	}
	now, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	b := s.client.B()
	from := strconv.FormatInt(now+1, 10)
	cmds := make(rueidis.Commands, 0, perLock*len(names))
	for _, name := range names {
		permits := s.style.Suffix(name, "timeout")
		cmds = append(cmds,
			b.Pttl().Key(name).Build(),
			b.Hlen().Key(name).Build(),
			b.Hget().Key(name).Field("mode").Build(),
			s.client.B().Hscan().Key(name).Cursor(0).Count(someOwners).Build(),
			b.Get().Key(name).Build(),
			b.Zrangebyscore().Key(permits).Min(from).Max("+inf").Withscores().Limit(0, someOwners).Build())
	}
	replies := s.client.DoMulti(ctx, cmds...)
	locks := make([]*Lock, len(names))
	for i, name := range names {
		r := replies[perLock*i:]
		l := &Lock{Name: name, Owner: []Owner{}, look: look{now: now}}
		locks[i] = l
		ttl, err := r[0].AsInt64()
		switch {
		case script.DeniedKeys(err):
			l.denied = fmt.Errorf("read %q: %w", name, err)
			continue
		case err != nil:
			return nil, fmt.Errorf("read %q: %w", name, err)
		}
		l.exists = ttl != noKey
		switch size, err := r[1].AsInt64(); {
		case err == nil && size > 0:
			mode, _ := r[2].ToString()
			fields, err := fieldsOf(r[3])
			if script.Denied(err) && len(names) == 1 { // a user who may take locks may do this
				fields, err = s.client.Do(ctx, b.Hgetall().Key(name).Build()).AsStrMap()
			}
			if script.Denied(err) {
				return nil, fmt.Errorf("read %q: %w", name, err)
			}
			if err == nil {
				l.readHash(size, max(ttl, 0), mode, fields)
			}
		case err != nil: // another type: a string may be a semaphore
			l.readPermits(now, r[4], r[5])
		}
	}
	return locks, s.countPermits(ctx, from, locks)
}

// now is Redis's clock in Unix milliseconds: leases of permits go by it.
func (s *server) now(ctx context.Context) (int64, error) {
	parts, err := s.client.Do(ctx, s.client.B().Time().Build()).AsIntSlice()
	if err != nil || len(parts) != 2 {
		return 0, fmt.Errorf("ask Redis for its time: %w", err)
	}
	return parts[0]*1000 + parts[1]/1000, nil
}

// noKey is what PTTL says of a key that is not there.
const noKey = -2

// fieldsOf returns what HSCAN has read of a hash.
func fieldsOf(r rueidis.RedisResult) (map[string]string, error) {
	entry, err := r.AsScanEntry()
	fields := make(map[string]string, len(entry.Elements)/2)
	for i := 0; i+1 < len(entry.Elements); i += 2 {
		fields[entry.Elements[i]] = entry.Elements[i+1]
	}
	return fields, err
}

// readHash decodes a mutex or a read-write lock. A hash with something else in it is no lock.
func (l *Lock) readHash(size, ttl int64, mode string, fields map[string]string) {
	if ttl == 0 {
		return // without an end it is no lock: each has a lease
	}
	holds := map[string]int64{}
	for field, value := range fields {
		if field == "mode" {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 {
			return
		}
		holds[field] += n
	}
	count := int(size)
	switch {
	case mode == "read" || mode == "write":
		l.Kind, l.Mode = kindRW, mode
		merged := map[string]int64{}
		for field, n := range holds {
			merged[strings.TrimSuffix(field, ":write")] += n
		}
		count -= 1 + len(holds) - len(merged)
		holds = merged
	case size == 1 && mode == "":
		l.Kind = kindMutex
	default:
		return // several fields and no mode: another program's hash
	}
	l.TTL, l.Count = ttl, count
	for id, n := range holds {
		l.Owner = append(l.Owner, Owner{ID: id, Holds: n})
	}
	slices.SortFunc(l.Owner, func(a, b Owner) int { return strings.Compare(a.ID, b.ID) })
}

// label adds to each owner who it is, and how long it has held the lock.
func (s *server) label(ctx context.Context, locks []*Lock) {
	var owners []Owner
	for _, l := range locks {
		owners = append(owners, l.Owner...)
	}
	s.labels.load(ctx, s.client, owners)
	for _, l := range locks {
		for i := range l.Owner {
			o := &l.Owner[i]
			o.Process = s.labels.of(*o)
			o.Kept = l.Mode != "read" && keeps.MatchString(o.ID)
		}
		l.ages()
	}
}

// keeps matches the owners of sessions that may keep the lock: rlock.Keep begins their number with a 0. Whether a section
// is open is known to the session alone, since what it does with a lock that it keeps costs no command.
var keeps = regexp.MustCompile(`^.+:0[0-9]+$`)

// noEnd is a century in milliseconds. Redisson gives a permit without a lease a later end, which
// is too long for a time.Duration.
const noEnd = 100 * 365 * 24 * 3600 * 1000

// left prints a time to live for people.
func left(ms int64) string {
	switch {
	case ms <= 0:
		return "-"
	case ms > noEnd:
		return "without end"
	case ms < 10_000:
		return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
	}
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}
