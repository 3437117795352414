package main_test

import (
	"strings"
	"testing"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// A long name does not push the other columns off a terminal: its middle goes. Elsewhere it is printed whole.
func TestNamesFitTheTerminal(t *testing.T) {
	redistest.EachParallel(t, func(t *testing.T, s *redistest.Server) {
		name := "orders:" + strings.Repeat("long-", 30) + "tail:42"
		c, session := newCLI(t, s), dialAs(t, s, strings.Repeat("worker-", 20)+"7")
		for _, n := range []string{name, "short"} {
			_, _, err := rlock.New(session, n).Lock(within(t))
			must(t, err)
		}
		for _, command := range []string{"ls", "top -n 1 --interval 100ms"} {
			args := strings.Fields(command)
			term := startTerminalOf(t, c.command(args...), 80)
			if code := term.wait(); code != 0 {
				t.Fatalf("%s: exit code %d", command, code)
			}
			term.until("HELD BY")
			found := 0
			for line := range strings.SplitSeq(term.text(), "\n") {
				line = strings.NewReplacer("\r", "", "\x1b[K", "", "\x1b[7m", "", "\x1b[0m", "", "\x1b[H", "", "\x1b[J", "").Replace(line)
				line, _, _ = strings.Cut(line, "\x1b[?25h") // the end of the second screen
				if n := len([]rune(line)); n > 80 && !strings.Contains(line, "\x1b") {
					t.Errorf("%s: %d letters on a terminal of 80: %q", command, n, line)
				}
				words := strings.Fields(line)
				if len(words) > 3 && strings.HasPrefix(words[0], "orders:") {
					found++
					last := words[len(words)-1]
					if !strings.Contains(words[0], "…") || !strings.HasSuffix(words[0], ":42") || !strings.HasPrefix(last, "worker") || !strings.HasSuffix(last, "7") {
						t.Errorf("%s: the line is %q", command, line)
					}
				}
				if len(words) > 3 && words[0] == "short" {
					found++
				}
			}
			if found != 2 {
				t.Errorf("%s: %d locks in\n%s", command, found, term.text())
			}
			if out := c.want(0, args...).out; !strings.Contains(out, name+" ") {
				t.Errorf("%s shortens a name where there is no terminal:\n%s", command, out)
			}
		}
		if found := names(decode[[]lock](c, "ls")); len(found) != 2 || found[0] != name {
			t.Errorf("in JSON the names are %q", found)
		}
	})
}
