package main_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// lock is what ls and show print.
type lock struct {
	Name   string  `json:"name"`
	Kind   string  `json:"kind"`
	Mode   string  `json:"mode"`
	TTL    int64   `json:"ttl_ms"`
	Count  int     `json:"owners_count"`
	Owners []owner `json:"owners"`
	Free   *int64  `json:"free"`
	Limit  *int64  `json:"limit"`
	Token  int64   `json:"token"`
	Left   *int64  `json:"count"`
	Held   bool    `json:"held"`
	Leader *struct {
		Term  int64  `json:"term"`
		Value string `json:"value"`
	} `json:"leader"`
	queue
}

// queue is what they print of those who wait for a lock.
type queue struct {
	Waiting int64 `json:"waiting_sessions"`
	Writers int64 `json:"waiting_writers"`
	Fair    bool  `json:"fair"`
	Line    int   `json:"line"`
	InLine  []struct {
		Session string `json:"session"`
		Callers int    `json:"callers"`
		Silent  bool   `json:"silent"`
		Process *struct {
			Label string `json:"label"`
		} `json:"process"`
	} `json:"line_sessions"`
}

type owner struct {
	ID      string `json:"owner"`
	Holds   int64  `json:"holds"`
	Least   int64  `json:"held_at_least_ms"`
	Most    int64  `json:"held_at_most_ms"`
	Kept    bool   `json:"may_be_kept"`
	Process *struct {
		Label   string `json:"label"`
		Started string `json:"started"`
		Version string `json:"version"`
	} `json:"process"`
}

// recent reports whether a text is a time in RFC 3339, of the last hour.
func recent(text string) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && time.Since(at).Abs() < time.Hour
}

func names(locks []lock) (all []string) {
	for _, l := range locks {
		all = append(all, l.Name)
	}
	return all
}

// settles waits until get gives what is wanted: waiters take a moment to queue.
func settles(tb testing.TB, want string, get func() string) {
	tb.Helper()
	got := get()
	for end := time.Now().Add(patience / 3); got != want && time.Now().Before(end); got = get() {
	}
	if got != want {
		tb.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// inBackground calls fn, which waits for a lock, and ends it with the test.
func inBackground(tb testing.TB, fn func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = fn(ctx) // it is cancelled
	}()
	tb.Cleanup(func() { cancel(); <-done })
}

// locksOfAllKinds takes a lock of each kind.
func locksOfAllKinds(tb testing.TB, s *redistest.Server, session *rlock.Session) {
	tb.Helper()
	ctx := within(tb)
	section, _, err := rlock.New(session, "a:mutex", rlock.Fenced()).Lock(ctx)
	must(tb, err)
	_, _, err = rlock.New(session, "a:mutex", rlock.Fenced()).Lock(section)
	must(tb, err)
	_, _, err = fairlock.New(session, "a:fair").Lock(ctx)
	must(tb, err)
	_, _, err = rwlock.New(session, "a:read").RLock(rlock.WithOwner(ctx, "reader-1"))
	must(tb, err)
	_, _, err = rwlock.New(session, "a:read").RLock(rlock.WithOwner(ctx, "reader-2"))
	must(tb, err)
	section, _, err = rwlock.New(session, "a:write").Lock(ctx)
	must(tb, err)
	_, _, err = rwlock.New(session, "a:write").RLock(section)
	must(tb, err)
	_, _, err = semaphore.New(session, "a:semaphore", 5).Acquire(ctx, 2)
	must(tb, err)
	_, err = semaphore.NewCounter(session, "a:counter").TrySet(ctx, 7)
	must(tb, err)
	for _, cmd := range []string{
		"SET a:text some", "SET a:number 3", "RPUSH a:list 1", "HSET a:hash field text", "HSET a:numbers one 1 two 2",
		"HSET a:forever one 1", "ZADD a:board 5 one", "ZADD a:timeout 5 one", "EXPIRE a:hash 100", "EXPIRE a:numbers 100",
	} {
		must(tb, s.Do(tb, strings.Fields(cmd)...).Error())
	}
}

// ls lists the locks that are held, of each kind, and nothing else.
func TestLs(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session := newCLI(t, s), dialAs(t, s, "web-3:4711")
		if r := c.want(0, "ls", "--json"); r.out != "[]\n" {
			t.Errorf("an empty Redis has %q", r.out)
		}
		locksOfAllKinds(t, s, session)
		inBackground(t, func(ctx context.Context) error { _, _, err := rlock.New(dial(t, s), "a:mutex").Lock(ctx); return err })
		inBackground(t, func(ctx context.Context) error { _, _, err := fairlock.New(dial(t, s), "a:fair").Lock(ctx); return err })
		want := strings.Join([]string{
			"a:fair mutex  1 owners web-3:4711 waiting 0+1, fair true", "a:mutex mutex  1 owners web-3:4711 waiting 0+1, fair false",
			"a:read rwlock read 2 owners  waiting 0+0, fair false", "a:semaphore semaphore  1 owners web-3:4711 waiting 0+0, fair false",
			"a:write rwlock write 1 owners web-3:4711 waiting 0+0, fair false",
		}, "\n")
		settles(t, want, func() string {
			var got []string
			for _, l := range decode[[]lock](c, "ls") {
				label := ""
				if p := l.Owners[0].Process; p != nil {
					label = p.Label
				}
				got = append(got, fmt.Sprintf("%s %s %s %d owners %s waiting %d+%d, fair %v", l.Name, l.Kind, l.Mode, l.Count, label, l.Waiting, l.Line, l.Fair))
				if l.TTL < 1 || l.TTL > 31_000 {
					t.Errorf("%s has a lease of %d ms", l.Name, l.TTL)
				}
			}
			return strings.Join(got, "\n")
		})
		text := c.want(0, "ls").out
		for _, want := range []string{"NAME", "a:fair       mutex (fair)", "2 of 5", "rwlock (write)", "web-3:4711", "reader-1 and 1 more"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
	})
}

// A pattern is a glob as Redis takes it, for all kinds of lock.
func TestLsPattern(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session := newCLI(t, s), dial(t, s)
		all := []string{"a", "b:1", "b:2", "b:12", "{b}:3", "*", "b\x1b[2Jx"}
		for _, name := range all {
			_, _, err := semaphore.New(session, "s"+name, 1).Acquire(within(t), 1)
			must(t, err)
			_, _, err = rlock.New(session, "m"+name).Lock(within(t))
			must(t, err)
		}
		for pattern, want := range map[string]string{
			"*": "a b:1 b:2 b:12 {b}:3 * b\x1b[2Jx", "?a": "a", "?b:?": "b:1 b:2", "?b:[2-9]": "b:2", "?b:[^2]": "b:1",
			`?\*`: "*", "?{b}*": "{b}:3", "?b:[12]*": "b:1 b:2 b:12", "none": "", "?[": "", "?b:[": "",
		} {
			var wanted []string
			for _, name := range strings.Fields(want) {
				wanted = append(wanted, "m"+name, "s"+name)
			}
			slices.Sort(wanted)
			if got := names(decode[[]lock](c, "ls", pattern)); !slices.Equal(got, wanted) {
				t.Errorf("ls %s: %q, want %q", pattern, got, wanted)
			}
		}
		if text := c.want(0, "ls").out; strings.ContainsRune(text, 0x1b) {
			t.Errorf("a name controls the terminal: %q", text)
		}
		c.want(64, "ls", "a", "b")
	})
}

// A lock with very many readers is one lock, and costs no more to list than any other.
func TestLsManyReaders(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		const readers = 3000
		args := []string{"HSET", "x", "mode", "read"}
		for i := range readers {
			args = append(args, fmt.Sprintf("reader-%d", i), "1")
		}
		must(t, s.Do(t, args...).Error())
		must(t, s.Do(t, "PEXPIRE", "x", "30000").Error())
		c := newCLI(t, s)
		l := decode[[]lock](c, "ls")[0]
		if l.Kind != "rwlock" || l.Count != readers {
			t.Errorf("a %s with %d owners", l.Kind, l.Count)
		}
		if !s.IsMini() && len(l.Owners) > 100 {
			t.Errorf("ls has read %d owners", len(l.Owners))
		}
		if l := decode[lock](c, "show", "x"); len(l.Owners) != readers {
			t.Errorf("show has %d owners", len(l.Owners))
		}
	})
}

// show tells all that is known of a lock of any kind.
func TestShow(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c, session := newCLI(t, s), dialAs(t, s, "web-3:4711")
		locksOfAllKinds(t, s, session)
		inBackground(t, func(ctx context.Context) error { _, _, err := rlock.New(dial(t, s), "a:mutex").Lock(ctx); return err })
		for range 2 {
			inBackground(t, func(ctx context.Context) error { _, _, err := fairlock.New(dial(t, s), "a:fair").Lock(ctx); return err })
		}
		inBackground(t, func(ctx context.Context) error { _, _, err := rwlock.New(dial(t, s), "a:read").Lock(ctx); return err })
		inBackground(t, func(ctx context.Context) error { _, _, err := rwlock.New(dial(t, s), "a:write").RLock(ctx); return err })
		inBackground(t, func(ctx context.Context) error {
			_, _, err := semaphore.New(dial(t, s), "a:semaphore", 5).Acquire(ctx, 4)
			return err
		})
		for name, want := range map[string]string{
			"a:mutex":     "mutex /1 owners, 2 holds/token true/waiting 0+0+1, fair false",
			"a:fair":      "mutex /1 owners, 1 holds/token false/waiting 0+0+2, fair true",
			"a:read":      "rwlock read/2 owners, 1 holds/token false/waiting 0+1+1, fair false",
			"a:write":     "rwlock write/1 owners, 2 holds/token false/waiting 0+0+1, fair false",
			"a:semaphore": "semaphore /1 owners, 2 holds/token false/waiting 0+0+1, fair false/3 of 5",
		} {
			settles(t, want, func() string {
				l := decode[lock](c, "show", name)
				got := fmt.Sprintf("%s %s/%d owners, %d holds/token %v/waiting %d+%d+%d, fair %v", l.Kind, l.Mode, len(l.Owners), l.Owners[0].Holds, l.Token > 0, l.Waiting, l.Writers, l.Line, l.Fair)
				if l.Limit != nil {
					got += fmt.Sprintf("/%d of %d", *l.Free, *l.Limit)
				}
				if !l.Held || l.TTL < 1 || l.TTL > 31_000 {
					t.Errorf("%s: held %v for %d ms", name, l.Held, l.TTL)
				}
				return got
			})
		}
		p := decode[lock](c, "show", "a:mutex").Owners[0].Process
		if p == nil || p.Label != "web-3:4711" || p.Version != rlock.Version || !recent(p.Started) {
			t.Errorf("the owner's process is %+v", p)
		}
		text := c.want(0, "show", "a:mutex").out
		for _, want := range []string{"web-3:4711", p.Version, session.ID() + ":", "0 sessions listen", "1 caller in the line", "the highest drawn"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		if text := c.want(0, "show", "a:read").out; !strings.Contains(text, "not known") || !strings.Contains(text, "1 of them a writer") {
			t.Errorf("show says %s", text)
		}
	})
}

// show tells a free lock from a key that is no lock, and from a counter.
func TestShowOther(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		c := newCLI(t, s)
		locksOfAllKinds(t, s, dial(t, s))
		if l := decode[lock](c, "show", "free"); l.Held || l.Kind != "" || l.TTL != 0 || len(l.Owners) != 0 {
			t.Errorf("a free lock is %+v", l)
		}
		if text := c.want(0, "show", "free").out; !strings.Contains(text, "free") {
			t.Errorf("a free lock is %s", text)
		}
		if l := decode[lock](c, "show", "a:counter"); l.Kind != "counter" || *l.Free != 7 || l.Held {
			t.Errorf("a counter is %+v", l)
		}
		for _, name := range []string{"a:text", "a:list", "a:hash", "a:numbers", "a:forever", "a:board"} {
			if r := c.want(70, "show", name); !strings.Contains(r.err, "is no lock") {
				t.Errorf("show %s says %q", name, r.err)
			}
		}
		c.want(64, "show")
		c.want(64, "show", "")
		c.want(64, "show", "a", "b")
		c.want(69, "show", "x", "--redis", "redis://127.0.0.1:1")
	})
}
