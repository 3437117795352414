package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"relock/internal/test/benchkit"
)

//go:embed performance.md.tmpl
var documentText string

//go:embed figures.md.tmpl
var figuresText string

// documents writes performance.md to the documents, and figures.md, which has the tables that most readers need not
// see, to another folder.
func documents(r *Report, docs, tables string) error {
	return errors.Join(
		document(r, documentText, filepath.Join(docs, "performance.md")),
		document(r, figuresText, filepath.Join(tables, "figures.md")))
}

// document writes one of them.
func document(r *Report, text, path string) error {
	t, err := template.New(filepath.Base(path)).Funcs(template.FuncMap{
		"rates":    rates,
		"costs":    costs,
		"waits":    waitTable,
		"handover": handOverTable,
		"sessions": sessionsTable,
		"waiting":  waitingTable,
		"others":   othersTable,
		"goals":    mainGoals,
		"more":     sessionGoals,
	}).Parse(text)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = t.Execute(f, map[string]any{
		"R": r, "M": r.Machine,
		"One": inOne, "Four": inFour, "Own": []benchkit.Scene{benchkit.OwnKeys64}, "Work": []benchkit.Scene{benchkit.Four16Ms},
		"Costs":   []benchkit.Scene{benchkit.Alone, benchkit.Same64, benchkit.Four16},
		"Waits64": benchkit.Same64, "Waits4": benchkit.Four16,
		"Slices": r.Slices, "PictureOne": pictureOne, "PictureFour": pictureFour, "PictureWaits": pictureWaits,
		"PictureSessions": pictureSessions, "PictureSessionWaits": pictureSessionWaits,
	})
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	return nil
}

// table is a Markdown table.
type table struct{ rows [][]string }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String ends without a newline; the first row is the heading.
func (t *table) String() string {
	var b strings.Builder
	for i, row := range t.rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("| " + strings.Join(row, " | ") + " |")
		if i == 0 {
			b.WriteString("\n|---" + strings.Repeat("|--:", len(row)-1) + "|")
		}
	}
	return b.String()
}

const nothing = "–"

// rates is a line for each kind and a column for each scene, see [rate].
func rates(cols []*Column, scenes []benchkit.Scene) string {
	var t table
	head := []string{""}
	for _, sc := range scenes {
		head = append(head, sc.Name)
	}
	t.add(head...)
	for _, col := range cols {
		row := []string{name(col)}
		for _, sc := range scenes {
			cell := col.Cells[sc.Name]
			if cell == nil {
				row = append(row, nothing)
				continue
			}
			row = append(row, rate(cell))
		}
		t.add(row...)
	}
	return t.String()
}

// rate is a cell's rate as a part of the base; and, in brackets, as it is, and the server's
// processor time for each round, which only Redis tells.
func rate(c *benchkit.Cell) string {
	text := fmt.Sprintf("**%s** (%s/s", part(c.Ratio()), count(c.Rate()))
	if c.CPU >= 0 {
		text += ", " + micros(c.CPU)
	}
	return text + ")"
}

// costs is what a round sends and allocates when one goroutine is alone, when 64 compete in
// a process, and when 64 of four processes do.
func costs(cols []*Column, scenes []benchkit.Scene) string {
	var t table
	t.add("", "commands, alone", "allocations, alone", "commands, 64 in one process", "commands, 4 processes of 16")
	for _, col := range cols {
		row := []string{name(col)}
		for i, sc := range scenes {
			cell := col.Cells[sc.Name]
			if cell == nil {
				row = append(row, slices.Repeat([]string{nothing}, max(1, 2-i))...)
				continue
			}
			if cell.Commands < 0 {
				row = append(row, nothing)
			} else {
				row = append(row, fmt.Sprintf("%.1f", cell.Commands))
			}
			switch {
			case i == 0 && cell.Mallocs == 0: // not of a process of ours
				row = append(row, nothing)
			case i == 0:
				row = append(row, fmt.Sprintf("%.0f", cell.PerOp(float64(cell.Mallocs))))
			}
		}
		t.add(row...)
	}
	return t.String()
}

// waitTable is what rounds of a scene waited, and how evenly the goroutines were served.
func waitTable(cols []*Column, sc benchkit.Scene) string {
	var t table
	t.add("", "half within", "99 % within", "longest, median goroutine", "longest of all", "evenness", "gave up")
	for _, col := range cols {
		cell := col.Cells[sc.Name]
		if cell == nil {
			continue
		}
		t.add(name(col), span(cell.Wait(0.5)), span(cell.Wait(0.99)), span(cell.TypicalLongest()), span(cell.Wait(1)),
			fmt.Sprintf("%.2f", cell.Jain()), fmt.Sprint(cell.GaveUp))
	}
	return t.String()
}

// handOverTable is the time from one process's release to the other's entry.
func handOverTable(cols []*Column) string {
	var t table
	t.add("", "half within", "99 % within", "longest")
	for _, col := range cols {
		if len(col.HandOver) == 0 {
			continue
		}
		t.add(name(col), span(benchkit.Percentile(col.HandOver, 0.5)),
			span(benchkit.Percentile(col.HandOver, 0.99)), span(benchkit.Percentile(col.HandOver, 1)))
	}
	return t.String()
}

// sessionsTable is a line for each number of sessions, so that it can be seen what grows with them.
func sessionsTable(cols []*Column) string {
	var t table
	t.add("", "rate", "commands", "99 % within", "longest of all", "evenness", "got nothing", "gave up")
	for _, col := range cols {
		for _, sc := range inSessions {
			cell := col.Cells[sc.Name]
			if cell == nil {
				continue
			}
			never := 0
			for _, n := range cell.PerWorker {
				if n == 0 {
					never++
				}
			}
			t.add(fmt.Sprintf("%s, %d", name(col), sc.Sessions), rate(cell), fmt.Sprintf("%.0f", cell.Ran),
				span(cell.Wait(0.99)), span(cell.Wait(1)), fmt.Sprintf("%.2f", cell.Jain()), fmt.Sprint(never), fmt.Sprint(cell.GaveUp))
		}
	}
	return t.String()
}

// waitingTable is what an acquisition of ours costs with more and more waiters.
func waitingTable(cols []*Column) string {
	var t table
	t.add("", "commands", "allocations", "rate", "evenness")
	for _, col := range cols {
		for _, sc := range waiting {
			if cell := col.Cells[sc.Name]; cell != nil {
				t.add(name(col)+", "+sc.Name, fmt.Sprintf("%.2f", cell.Commands),
					fmt.Sprintf("%.0f", cell.PerOp(float64(cell.Mallocs))),
					rate(cell),
					fmt.Sprintf("%.2f", cell.Jain()))
			}
		}
	}
	return t.String()
}

// othersTable is a line for each of our other kinds in each of their scenes.
func othersTable(cols []*Column) string {
	var t table
	t.add("", "rate", "commands", "allocations", "half wait", "99 % wait")
	for _, col := range cols {
		for _, sc := range []benchkit.Scene{benchkit.Alone, benchkit.OwnKeys64, benchkit.Same64} {
			if cell := col.Cells[sc.Name]; cell != nil {
				t.add(name(col)+", "+sc.Name,
					rate(cell),
					fmt.Sprintf("%.2f", cell.Commands), fmt.Sprintf("%.0f", cell.PerOp(float64(cell.Mallocs))),
					span(cell.Wait(0.5)), span(cell.Wait(0.99)))
			}
		}
	}
	return t.String()
}

// name is set in bold for ours.
func name(col *Column) string {
	if col.Ours {
		return "**" + col.Name + "**"
	}
	return col.Name
}

// part, micros, count and span print no more digits than the measurement has.
func part(ratio float64) string {
	switch {
	case ratio >= 0.1:
		return fmt.Sprintf("%.2f", ratio)
	case ratio >= 0.01:
		return fmt.Sprintf("%.3f", ratio)
	}
	return fmt.Sprintf("%.4f", ratio)
}

func micros(us float64) string {
	switch {
	case us >= 10:
		return fmt.Sprintf("%.0f µs", us)
	case us >= 1:
		return fmt.Sprintf("%.1f µs", us)
	}
	return fmt.Sprintf("%.2f µs", us)
}

func count(rate float64) string {
	if rate >= 10_000 {
		return fmt.Sprintf("%.1fk", rate/1000)
	}
	return fmt.Sprintf("%.0f", rate)
}

func span(d time.Duration) string {
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.0f µs", float64(d)/float64(time.Microsecond))
}
