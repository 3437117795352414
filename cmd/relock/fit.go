package main

import (
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// leastCell is to how many letters a cell is shortened at most.
const leastCell = 8

// columnGap is between two columns.
const columnGap = 2

// terminalWidth is how many letters fit into a line, or 0 if standard output is no terminal: a program
// that reads names needs all of them.
func terminalWidth() int {
	fd := int(os.Stdout.Fd())
	if !term.IsTerminal(fd) {
		return 0
	}
	width, _, err := term.GetSize(fd)
	if err != nil {
		return 0
	}
	return width
}

// fit shortens the cells of some columns, the widest first, so that the rows are no longer than width if
// that can be. Width 0 has no bound.
func fit(rows [][]string, width int, columns ...int) {
	widest := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widest[i] = max(widest[i], utf8.RuneCountInString(cell))
		}
	}
	over := columnGap*(len(widest)-1) - width
	for _, w := range widest {
		over += w
	}
	for ; width > 0 && over > 0; over-- {
		most := columns[0]
		for _, c := range columns {
			if widest[c] > widest[most] {
				most = c
			}
		}
		if widest[most] <= leastCell {
			break
		}
		widest[most]--
	}
	for _, row := range rows {
		for _, c := range columns {
			row[c] = shortened(row[c], widest[c])
		}
	}
}

// shortened leaves the beginning and the end of a text that is longer than most letters: names of locks
// begin with what they are about, and end with the number of one thing.
func shortened(text string, most int) string {
	letters := []rune(text)
	if len(letters) <= most {
		return text
	}
	end := (most - 1) / 2
	return string(letters[:most-1-end]) + "…" + string(letters[len(letters)-end:])
}
