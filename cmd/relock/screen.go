package main

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// What a terminal is told: all of it VT100, but for the second screen.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the second screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
	inverse     = "\x1b[7m"
	plain       = "\x1b[0m"
)

// headLines are the lines above the table's heading.
const headLines = 3

// A screen shows top in a terminal, and hears its keys.
type screen struct {
	out   *os.File
	saved *term.State // nil: standard input is no terminal
	quit  func()

	mu    sync.Mutex
	order string
	last  *Totals
}

// openScreen takes the terminal over. quit is called for the key q.
func openScreen(f *topFlags, quit func()) (*screen, error) {
	s := &screen{out: os.Stdout, quit: quit, order: f.order}
	if stdin := int(os.Stdin.Fd()); term.IsTerminal(stdin) {
		saved, err := term.MakeRaw(stdin)
		if err != nil {
			return nil, fmt.Errorf("the terminal: %w", err)
		}
		s.saved = saved
		go s.listen() // it ends with the process: a read from a terminal cannot be ended
	}
	_, err := s.out.WriteString(enterScreen)
	return s, err
}

// close gives the terminal back as it was.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
	_, _ = s.out.WriteString(leaveScreen)
	if s.saved != nil {
		_ = term.Restore(int(os.Stdin.Fd()), s.saved)
	}
}

// listen heeds keys.
func (s *screen) listen() {
	key := make([]byte, 1)
	for {
		if n, err := os.Stdin.Read(key); err != nil || n == 0 {
			return
		}
		switch key[0] {
		case 'q', 3, 4: // also Ctrl-C and Ctrl-D, which are no signals on a raw terminal
			s.quit()
		case 's':
			s.mu.Lock()
			s.order = next(s.order)
			_ = s.draw()
			s.mu.Unlock()
		}
	}
}

// show draws a refresh.
func (s *screen) show(t *Totals) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = t
	return s.draw()
}

// draw writes the last refresh. s.mu must be held.
func (s *screen) draw() error {
	if s.last == nil {
		return nil
	}
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	s.last.sort(s.order)
	lines := s.last.lines(s.order, width)
	lines[1] += "  (s: order, q: quit)"
	var text strings.Builder
	text.WriteString(home)
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			text.WriteString("\r\n")
		}
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width])
		}
		if i == headLines {
			line = inverse + line + plain
		}
		text.WriteString(line + clearLine)
	}
	text.WriteString(clearBelow)
	_, err = s.out.WriteString(text.String())
	return err
}
