package locktest

import (
	"log/slog"
	"strings"
	"sync"
)

// A Journal keeps what a Logger is told.
type Journal struct {
	mu    sync.Mutex
	Lines []string
}

// Logger returns the Logger.
func (j *Journal) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// Write takes a line of the log.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Lines = append(j.Lines, string(p))
	return len(p), nil
}

// Count returns how many lines hold a text.
func (j *Journal) Count(text string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.Lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// Clear forgets all lines.
func (j *Journal) Clear() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Lines = nil
}

// Last returns the last line that holds a text, "" if none does.
func (j *Journal) Last(text string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := len(j.Lines) - 1; i >= 0; i-- {
		if strings.Contains(j.Lines[i], text) {
			return j.Lines[i]
		}
	}
	return ""
}
