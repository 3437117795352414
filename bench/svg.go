package main

import (
	"fmt"
	"html"
	"os"
	"strings"
	"unicode/utf8"
)

// An svg is a picture that looks the same wherever it is shown: it names no font, and leaves to
// each text the room that a wide font needs.
type svg struct {
	width, height float64
	body          strings.Builder
}

const (
	// em is how wide a character is at most, on average, in the sizes of its font. DejaVu Sans,
	// which is among the widest that stand for sans-serif, has 0.64 for digits.
	em = 0.66

	textSize  = 13.0
	titleSize = 15.0
	ink       = "#222222"
	faint     = "#d8d8d8"
)

// widthOf returns the room that a text needs.
func widthOf(text string, size float64) float64 {
	return float64(utf8.RuneCountInString(text)) * em * size
}

// How a text lies at its point: it begins, has its middle, or ends there.
const (
	begins = "start"
	middle = "middle"
	ends   = "end"
)

func (s *svg) text(x, y float64, anchor, text string) { s.sized(x, y, anchor, textSize, text) }

func (s *svg) sized(x, y float64, anchor string, size float64, text string) {
	fmt.Fprintf(&s.body, `<text x="%.1f" y="%.1f" font-size="%.0f" text-anchor="%s" fill="%s">%s</text>`+"\n",
		x, y, size, anchor, ink, html.EscapeString(text))
}

func (s *svg) line(x1, y1, x2, y2 float64, colour string, width float64) {
	fmt.Fprintf(&s.body, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"/>`+"\n",
		x1, y1, x2, y2, colour, width)
}

// path draws a line through the points.
func (s *svg) path(points [][2]float64, colour string, width float64) {
	var at []string
	for _, p := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", p[0], p[1]))
	}
	fmt.Fprintf(&s.body, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%.1f"/>`+"\n",
		strings.Join(at, " "), colour, width)
}

// A mark is a shape that stands for a value.
type mark int

const (
	circle mark = iota
	square
	triangle
	cross
)

const markSize = 5.0

func (s *svg) mark(m mark, x, y float64, colour string) {
	const r = markSize
	switch m {
	case circle:
		fmt.Fprintf(&s.body, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`+"\n", x, y, r, colour)
	case square:
		fmt.Fprintf(&s.body, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x-r, y-r, 2*r, 2*r, colour)
	case triangle:
		fmt.Fprintf(&s.body, `<polygon points="%.1f,%.1f %.1f,%.1f %.1f,%.1f" fill="%s"/>`+"\n", x-r, y+r, x+r, y+r, x, y-r, colour)
	case cross:
		s.line(x-r, y-r, x+r, y+r, colour, 2.5)
		s.line(x-r, y+r, x+r, y-r, colour, 2.5)
	}
}

// A key is an entry of a legend.
type key struct {
	name   string
	mark   mark
	colour string
	width  float64 // of the line through the mark; 0: none
}

const (
	rowHeight = 22.0
	keyLine   = 26.0 // how long the line of an entry is
	keyGap    = 18.0
)

// legend lays entries out in as many rows as they need, and returns where the
// last of them is.
func (s *svg) legend(keys []key, left, right, top float64) float64 {
	x, y := left, top
	for _, k := range keys {
		width := keyLine + 6 + widthOf(k.name, textSize) + keyGap
		if x > left && x+width > right {
			x, y = left, y+rowHeight
		}
		if k.width > 0 {
			s.line(x, y-4, x+keyLine, y-4, k.colour, k.width)
		}
		s.mark(k.mark, x+keyLine/2, y-4, k.colour)
		s.text(x+keyLine+6, y, begins, k.name)
		x += width
	}
	return y
}

// save writes the picture, on white, also where the page is dark.
func (s *svg) save(path string) error {
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="sans-serif">`+"\n"+
		`<rect width="%.0f" height="%.0f" fill="#ffffff"/>`+"\n", s.width, s.height, s.width, s.height, s.width, s.height)
	if err := os.WriteFile(path, []byte(head+s.body.String()+"</svg>\n"), 0o644); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}
