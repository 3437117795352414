package main

import (
	"math"
	"path/filepath"
	"strconv"
	"time"

	"relock/internal/test/benchkit"
)

// The pictures, in the folder that the document is in.
const (
	pictureOne          = "throughput-one-process.svg"
	pictureFour         = "throughput-four-processes.svg"
	pictureSessions     = "throughput-sessions.svg"
	pictureSessionWaits = "waits-sessions.svg"
	pictureWaits        = "waits.svg"
)

const (
	pictureWidth = 800.0
	plotHeight   = 340.0
	margin       = 24.0
)

// palette tells the kinds apart, also for those who see no red or no green (Okabe, Ito). In the
// order of [compared]: ours first.
var palette = []string{"#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#8a5a00", "#888888"}

// colour is that of a kind, the same in every picture and whatever is left out.
func colour(name string) string {
	for i, k := range compared() {
		if k.Name == name {
			return palette[i%len(palette)]
		}
	}
	return ink
}

// pictures draws them all into the folder.
func pictures(r *Report, dir string) error {
	sessions := "sessions of one goroutine each, one lock"
	p99 := func(c *benchkit.Cell) float64 { return millis(c.Wait(0.99)) }
	for _, c := range []chart{
		{throughput, theFloor, (*benchkit.Cell).Ratio, "goroutines of one process, one lock", inOne, pictureOne},
		{throughput, theFloor, (*benchkit.Cell).Ratio, "goroutines of four processes, one lock", inFour, pictureFour},
		{throughput, theFloor, (*benchkit.Cell).Ratio, sessions, inSessions, pictureSessions},
		{"milliseconds within which 99 % of the rounds were let in", "Both scales are logarithmic.", p99, sessions, inSessions, pictureSessionWaits},
	} {
		if err := c.draw(r, dir); err != nil {
			return err
		}
	}
	return waits(r, benchkit.Four16, filepath.Join(dir, pictureWaits))
}

// A scale maps values to coordinates, logarithmically.
type scale struct{ low, high, from, to float64 }

func (s scale) at(v float64) float64 {
	return s.from + (s.to-s.from)*math.Log(v/s.low)/math.Log(s.high/s.low)
}

// decades returns a scale from one power of ten to another that has all values on it: those are
// what has a label, and a scale must have a length.
func decades(values []float64, from, to float64) scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, math.Floor(math.Log10(v))), max(high, math.Ceil(math.Log10(v)))
	}
	return scale{math.Pow(10, low), math.Pow(10, max(high, low+1)), from, to}
}

// ticks are the powers of ten on the scale.
func (s scale) ticks() (all []float64) {
	for e := math.Round(math.Log10(s.low)); e <= math.Round(math.Log10(s.high)); e++ {
		all = append(all, math.Pow(10, e))
	}
	return all
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// throughput is the title of the charts of rates.
const throughput = "acquisitions a second, in multiples of the floor"

// theFloor says below such a title what the floor is.
const theFloor = "floor: one goroutine with SET NX PX and a compare-and-delete. Logarithmic scales."

// apart is how far the marks of two kinds lie from each other that would hide each other else.
const apart = 2 * markSize

// A chart draws a value over the number of goroutines, both scales logarithmic. What is nothing, or
// not there, has no place on such a scale.
type chart struct {
	title  string
	below  string // what the reader has to know besides
	value  func(*benchkit.Cell) float64
	what   string // that there are more and more of
	scenes []benchkit.Scene
	file   string
}

// points are the values of a kind, by the number of goroutines.
func (c chart) points(col *Column) (all [][2]float64) {
	for _, sc := range c.scenes {
		if cell := col.Cells[sc.Name]; cell != nil && cell.Ops > 0 && c.value(cell) > 0 {
			all = append(all, [2]float64{goroutines(sc), c.value(cell)})
		}
	}
	return all
}

func (c chart) draw(r *Report, dir string) error {
	var keys []key
	var values []float64
	for _, col := range r.Compared {
		points := c.points(col)
		for _, at := range points {
			values = append(values, at[1])
		}
		if len(points) > 0 {
			keys = append(keys, key{col.Name, circle, colour(col.Name), lineWidth(col)})
		}
	}
	if len(values) == 0 {
		return nil // an empty logarithmic scale cannot be drawn
	}
	const top = margin + titleSize + textSize + 28
	const bottom = top + plotHeight
	y := decades(values, bottom, top)
	left := margin
	for _, v := range y.ticks() {
		left = max(left, margin+widthOf(plain(v), textSize)+8)
	}
	room := 16 + apart*float64(len(keys)-1)/2
	x := scale{goroutines(c.scenes[0]), goroutines(c.scenes[len(c.scenes)-1]), left + room, pictureWidth - margin - room}
	p := &svg{width: pictureWidth}
	p.sized(margin, margin+titleSize/2, begins, titleSize, c.title)
	p.text(margin, margin+titleSize+textSize, begins, c.below)
	for _, v := range y.ticks() {
		p.line(left, y.at(v), pictureWidth-margin, y.at(v), faint, 1)
		p.text(left-8, y.at(v)+textSize/3, ends, plain(v))
	}
	for _, sc := range c.scenes {
		at := x.at(goroutines(sc))
		p.line(at, top, at, bottom, faint, 1)
		p.text(at, bottom+20, middle, plain(goroutines(sc)))
	}
	p.text((left+pictureWidth-margin)/2, bottom+44, middle, c.what)
	shown := 0
	for _, col := range r.Compared {
		points := c.points(col)
		if len(points) == 0 {
			continue
		}
		beside := apart * (float64(shown) - float64(len(keys)-1)/2)
		shown++
		for i, at := range points {
			points[i] = [2]float64{x.at(at[0]) + beside, y.at(at[1])}
		}
		p.path(points, colour(col.Name), lineWidth(col))
		for _, at := range points {
			p.mark(circle, at[0], at[1], colour(col.Name))
		}
	}
	p.height = p.legend(keys, margin, pictureWidth-margin, bottom+78) + margin
	return p.save(filepath.Join(dir, c.file))
}

func lineWidth(col *Column) float64 {
	if col.Ours {
		return 3.5
	}
	return 1.8
}

// goroutines is how many compete.
func goroutines(sc benchkit.Scene) float64 { return float64(sc.Workers * max(1, sc.Processes)) }

// measures are what the picture of waits shows of each kind.
var measures = []struct {
	key
	of func(benchkit.Result) time.Duration
}{
	{key{"half the rounds", circle, palette[0], 0}, func(r benchkit.Result) time.Duration { return r.Wait(0.5) }},
	{key{"99 % of the rounds", square, palette[4], 0}, func(r benchkit.Result) time.Duration { return r.Wait(0.99) }},
	{key{"longest of the median goroutine", triangle, palette[3], 0}, benchkit.Result.TypicalLongest},
	{key{"longest of all", cross, palette[2], 0}, func(r benchkit.Result) time.Duration { return r.Wait(1) }},
}

// waits draws what the rounds of a scene waited: a row for each kind, so that names have room.
func waits(r *Report, sc benchkit.Scene, path string) error {
	var rows []*Column
	var values []float64
	left := margin
	for _, col := range r.Compared {
		cell := col.Cells[sc.Name]
		if cell == nil || len(cell.Waits) == 0 {
			continue
		}
		rows = append(rows, col)
		left = max(left, margin+widthOf(col.Name, textSize)+12)
		for _, m := range measures {
			values = append(values, millis(m.of(cell.Result)))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	const rowGap, top = 52.0, margin + titleSize + 20
	bottom := top + rowGap*float64(len(rows))
	x := decades(values, left+16, pictureWidth-margin-30)
	p := &svg{width: pictureWidth}
	p.sized(margin, margin+titleSize/2, begins, titleSize, "what the rounds waited, logarithmic: "+sc.Name)
	for _, v := range x.ticks() {
		p.line(x.at(v), top, x.at(v), bottom, faint, 1)
		p.text(x.at(v), bottom+20, middle, plain(v))
	}
	p.text((left+pictureWidth-margin)/2, bottom+44, middle, "milliseconds")
	for i, col := range rows {
		y := top + rowGap*(float64(i)+0.5)
		res := col.Cells[sc.Name].Result
		p.text(left-12, y+textSize/3, ends, col.Name)
		first := x.at(millis(measures[0].of(res)))
		last := x.at(millis(measures[len(measures)-1].of(res)))
		p.line(first, y, last, y, faint, lineWidth(col)*2)
		for j, m := range measures { // one below the other: they would hide each other else
			p.mark(m.mark, x.at(millis(m.of(res))), y+apart*(float64(j)-float64(len(measures)-1)/2), m.colour)
		}
	}
	var keys []key
	for _, m := range measures {
		keys = append(keys, m.key)
	}
	p.height = p.legend(keys, margin, pictureWidth-margin, bottom+78) + margin
	return p.save(path)
}

// millis never is 0, which has no place on a logarithmic scale.
func millis(d time.Duration) float64 {
	return max(0.001, float64(d.Microseconds())/1000)
}
