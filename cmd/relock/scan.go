package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/rueidis"

	"relock/internal/keyname"
)

// scanCount is how many keys one SCAN looks at: well below a millisecond of Redis's time.
const scanCount = 1000

// permitsSuffix ends the name of the key that has a semaphore's taken permits.
const permitsSuffix = ":timeout"

// helper matches the keys that stand beside a lock, and are none.
var helper = regexp.MustCompile(`^(relock|redisson)_[a-z_]+[0-9]*:`)

// A scan goes through the keys of one node, and finds what may be a lock. It never blocks
// Redis: each step is one SCAN of scanCount keys.
type scan struct {
	node
	kind    string // what this pass is about: a type of keys, or lines
	lines   bool   // a pass is for the lines too, of locks that nobody may hold
	cursor  uint64
	pattern string
}

// newScan returns a scan for names that match the pattern, a glob as SCAN takes it; lines has it look for the
// lines of plain locks too.
func newScan(n node, pattern string, lines bool) *scan {
	return &scan{node: n, kind: "hash", lines: lines, pattern: pattern}
}

// step asks once, and returns the names that were found. done says that all keys were seen.
// The first pass is for hashes, which are locks under their own names; the second for the
// permits of semaphores; the third, if there is one, for the lines of plain locks.
func (s *scan) step(ctx context.Context) (names []string, done bool, err error) {
	match, of := s.pattern, s.kind
	switch s.kind {
	case "zset":
		match = "*" + permitsSuffix
	case passLines:
		match, of = keyname.Line+":*", "zset"
	}
	entry, err := s.Do(ctx, s.B().Scan().Cursor(s.cursor).Match(match).Count(scanCount).Type(of).Build()).AsScanEntry()
	if err != nil {
		return nil, false, fmt.Errorf("scan: %w", err)
	}
	for _, key := range entry.Elements {
		name := key
		switch s.kind {
		case "zset":
			name = semaphoreName(key)
		case passLines:
			name = lineName(key)
		}
		if name != "" && !helper.MatchString(name) && glob(s.pattern).matches(name) {
			names = append(names, name)
		}
	}
	s.cursor = entry.Cursor
	switch {
	case s.cursor != 0:
		return names, false, nil
	case s.kind == "hash":
		s.kind = "zset"
		return names, false, nil
	case s.kind == "zset" && s.lines:
		s.kind = passLines
		return names, false, nil
	}
	return names, true, nil
}

// passLines is the kind of a pass for the lines of plain locks.
const passLines = "line"

// lineName returns which lock a line is of.
func lineName(key string) string {
	_, tagged, _ := strings.Cut(key, ":")
	if name, ok := strings.CutSuffix(tagged, ":"); ok && keyname.TagAlone(name) {
		return name // see Style.Prefix
	}
	return semaphoreName(tagged + permitsSuffix)
}

// semaphoreName returns whose permits a key has: "x" of "{x}:timeout", by Redisson's rule.
func semaphoreName(key string) string {
	name := strings.TrimSuffix(key, permitsSuffix)
	if inner, ok := strings.CutPrefix(name, "{"); ok {
		if inner, ok := strings.CutSuffix(inner, "}"); ok && !strings.ContainsAny(inner, "{}") {
			return inner
		}
	}
	return name
}

// scanAll returns the names on all nodes that may be locks.
func scanAll(ctx context.Context, client rueidis.Client, pattern string) ([]string, error) {
	all := masters(ctx, client)
	found := make([][]string, len(all))
	err := onNodes(all, func(i int, n node) error {
		s := newScan(n, pattern, false)
		for {
			names, done, err := s.step(ctx)
			if err != nil {
				return err
			}
			found[i] = append(found[i], names...)
			if done {
				return nil
			}
		}
	})
	seen := map[string]bool{}
	var names []string
	for _, some := range found {
		for _, name := range some {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, err
}
