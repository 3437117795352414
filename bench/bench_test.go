package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relock/internal/test/benchkit"
	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) {
	benchkit.Child(everyKind())
	os.Exit(m.Run())
}

// Every peer is wired so that it locks, in one process and in several, and counts what it
// sends. Waiters that a peer forgets are its own affair.
func TestPeersLock(t *testing.T) {
	s := redistest.Real(t)
	base, err := benchkit.NewBase(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(base.Close)
	for _, k := range peers {
		t.Run(k.Name, func(t *testing.T) {
			addr := s.Addr
			if len(k.Sends) == 0 {
				if _, err := exec.LookPath("etcd"); err != nil {
					t.Skip("SKIPPED, no etcd on PATH")
				}
				h := newHost()
				t.Cleanup(h.end)
				if addr, _, err = startEtcd(h); err != nil {
					t.Fatal(err)
				}
			}
			for _, sc := range []benchkit.Scene{
				benchkit.Alone, {Name: "both", Workers: 1, Processes: 2, Work: time.Millisecond},
			} {
				c, err := base.Measure(t.Context(), k, addr, sc, 300*time.Millisecond)
				if err != nil && !errors.Is(err, benchkit.ErrStuck) {
					t.Fatal(err)
				}
				if c.Ops == 0 || (len(k.Sends) > 0 && c.Commands < 1) {
					t.Errorf("%s: %d rounds with %.2f commands each", sc.Name, c.Ops, c.Commands)
				}
			}
		})
	}
}

// The whole program, as short as it can be, writes a whole document.
func TestRunWritesADocument(t *testing.T) {
	redistest.Real(t) // skips where there is none
	dir := t.TempDir()
	c := config{window: 50 * time.Millisecond, rounds: 2, only: []string{"rlock", "rwlock-read"}, out: dir, tables: dir}
	if err := run(c); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "performance.md"))
	more, err2 := os.ReadFile(filepath.Join(dir, "figures.md"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	text = append(text, more...)
	for _, want := range []string{"| **rlock** |", "| **rwlock-read**, ", "| **rlock**, 128 |", "waiters |", "redis-server 7"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document does not say %q", want)
		}
	}
	for _, bad := range []string{"<no value>", "NaN", "%!", dir} {
		if strings.Contains(string(text), bad) {
			t.Errorf("the document says %q", bad)
		}
	}
	for _, name := range []string{pictureOne, pictureFour, pictureSessions, pictureSessionWaits, pictureWaits} {
		picture, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(picture), "<svg") {
			t.Errorf("%s: %d bytes, %v", name, len(picture), err)
		}
		if !strings.Contains(string(text), "("+name+")") {
			t.Errorf("the document does not show %s", name)
		}
	}
}

func TestBadArguments(t *testing.T) {
	for _, c := range []config{
		{window: time.Second, rounds: 0},
		{window: 0, rounds: 1},
		{window: time.Second, rounds: 1, only: []string{"no such lock"}},
	} {
		if err := run(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// A run that measured nothing still gives a document: a kind may have failed everywhere.
func TestDocumentOfNothing(t *testing.T) {
	dir := t.TempDir()
	r := &Report{Compared: []*Column{{Name: "x", Cells: map[string]*benchkit.Cell{}}}, Notes: []string{"it failed."}}
	if err := errors.Join(pictures(r, dir), documents(r, dir, dir)); err != nil {
		t.Fatal(err)
	}
	page, _ := os.ReadFile(filepath.Join(dir, "performance.md"))
	more, _ := os.ReadFile(filepath.Join(dir, "figures.md"))
	text := append(page, more...)
	if !strings.Contains(string(text), "- it failed.") || !strings.Contains(string(text), "| x | – |") {
		t.Errorf("%s", text)
	}
}

func TestHostEndsWithTheError(t *testing.T) {
	var ended []string
	err := func() (err error) {
		h := newHost()
		defer h.close(&err)
		h.Cleanup(func() { ended = append(ended, "first") })
		h.Cleanup(func() { ended = append(ended, "last") })
		h.Fatalf("cannot %s", "go on")
		return nil
	}()
	if err == nil || err.Error() != "cannot go on" || strings.Join(ended, " ") != "last first" {
		t.Errorf("%v, cleaned up %q", err, ended)
	}
}

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{part(1.234), "1.23"}, {part(0.0567), "0.057"}, {part(0.00089), "0.0009"},
		{count(999), "999"}, {count(12_345), "12.3k"},
		{micros(12.34), "12 µs"}, {micros(1.234), "1.2 µs"}, {micros(0.0234), "0.02 µs"},
		{span(1500 * time.Millisecond), "1.5 s"}, {span(25 * time.Millisecond), "25 ms"},
		{span(2500 * time.Microsecond), "2.5 ms"}, {span(42 * time.Microsecond), "42 µs"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// A hand-over that never comes ends with its context.
func TestHandOverOfADeadLockEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	never := func(ctx context.Context, _ bool, _ func()) error { <-ctx.Done(); return ctx.Err() }
	if _, err := benchkit.HandOver(ctx, never, never, 1, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
