package main_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// Names and patterns may have letters of several bytes, and bytes that are no letters: what ls finds, for each kind of
// lock, are the names for which Redis itself takes the pattern.
func TestLsPatternGoesByBytes(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	c, session := newCLI(t, s), dial(t, s)
	all := []string{"über:1", "straße", "注文:42", "b\xffx", "x]", `x\`, "a-b", "axbxc"}
	for _, name := range all {
		_, _, err := rlock.New(session, "m"+name).Lock(within(t))
		must(t, err)
		_, _, err = semaphore.New(session, "s"+name, 1).Acquire(within(t), 1)
		must(t, err)
	}
	for _, pattern := range []string{
		"?über:*", "?straße", "*ß*", "?注文:[0-9]*", "?stra??e", "?stra?e", "?stra[ß][\x80-\xff]e", "?b\xff*", "?b?x", `?x[\]]`, `?x[\\]`, `?x\\`,
		"?[c-a]*", "?a[-]b", `?a\-b`, "?a*b*c", "?*b*b*", "?[]*", "?[^]*", "?[ax", "?x[^a]", "**c", "?a[x-", `?a[x\`, "",
	} {
		redis, err := s.Do(t, "KEYS", pattern).AsStrSlice()
		must(t, err)
		var want []string
		for _, name := range all {
			if slices.Contains(redis, "m"+name) != slices.Contains(redis, "s"+name) {
				t.Fatalf("%q tells the two kinds apart", pattern)
			}
			if slices.Contains(redis, "m"+name) {
				want = append(want, strings.ToValidUTF8("m"+name, "\ufffd"), strings.ToValidUTF8("s"+name, "\ufffd")) // as JSON has it
			}
		}
		slices.Sort(want)
		got := names(decode[[]lock](c, "ls", pattern))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("ls %q: %q, and Redis has %q", pattern, got, want)
		}
	}
}

// A name is shown without the bytes in it that are no letters: 0x9b begins what controls a terminal of 8 bits.
func TestLsShowsLettersOnly(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	c := newCLI(t, s)
	_, _, err := rlock.New(dialAs(t, s, "web·3"), "b\x9b2Jx").Lock(within(t))
	must(t, err)
	for _, args := range [][]string{{"ls"}, {"show", "b\x9b2Jx"}, {"top", "-n", "1", "--interval", "100ms"}, {"force", "b\x9b2Jx"}} {
		if text := c.want(0, args...).out; !utf8.ValidString(text) || !strings.Contains(text, "b·2Jx") {
			t.Errorf("%s prints %q", args[0], text)
		}
	}
}
