package main

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"relock/internal/test/benchkit"
)

// The pictures, in the folder that the document is in.
const (
	pictureOne   = "throughput-one-process.svg"
	pictureFour  = "throughput-four-processes.svg"
	pictureWaits = "waits.svg"
)

const (
	pictureWidth  = 16 * vg.Centimeter
	pictureHeight = 10 * vg.Centimeter
)

// palette tells the kinds apart, also for those who see no red or no green (Okabe, Ito).
// In the order of [compared]: ours first.
var palette = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, // ours: blue
	{0xd5, 0x5e, 0x00, 0xff}, {0xe6, 0x9f, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
}

// colour is that of a kind, the same in every picture and whatever is left out.
func colour(name string) color.RGBA {
	for i, k := range compared() {
		if k.Name == name {
			return palette[i%len(palette)]
		}
	}
	return color.RGBA{A: 0xff}
}

// pictures draws them all into the folder.
func pictures(r *Report, dir string) error {
	if err := throughput(r, inOne, "goroutines of one process, one lock", filepath.Join(dir, pictureOne)); err != nil {
		return err
	}
	if err := throughput(r, inFour, "goroutines of four processes, one lock", filepath.Join(dir, pictureFour)); err != nil {
		return err
	}
	return waits(r, benchkit.Four16, filepath.Join(dir, pictureWaits))
}

// throughput draws the rate over the number of goroutines, both scales logarithmic.
func throughput(r *Report, scenes []benchkit.Scene, what, path string) error {
	p := newPlot()
	p.X.Label.Text, p.Y.Label.Text = what, "acquisitions, as a part of the floor"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	var ticks []plot.Tick
	for _, sc := range scenes {
		ticks = append(ticks, plot.Tick{Value: goroutines(sc), Label: fmt.Sprint(goroutines(sc))})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	drawn := false
	for _, col := range r.Compared {
		var points plotter.XYs
		for _, sc := range scenes {
			// What is nothing, or not there, has no place on a logarithmic scale.
			if cell := col.Cells[sc.Name]; cell != nil && cell.Ratio() > 0 {
				points = append(points, plotter.XY{X: goroutines(sc), Y: cell.Ratio()})
			}
		}
		if len(points) == 0 {
			continue
		}
		drawn = true
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("draw %s: %w", col.Name, err)
		}
		line.Color, line.Width = colour(col.Name), vg.Points(1.5)
		if col.Ours {
			line.Width = vg.Points(3)
		}
		dots.Color, dots.Shape, dots.Radius = colour(col.Name), draw.CircleGlyph{}, vg.Points(3)
		p.Add(line, dots)
		p.Legend.Add(col.Name, line, dots)
	}
	if !drawn {
		return nil // an empty logarithmic scale cannot be drawn
	}
	// A third more than the lines need: the legend has it to itself.
	first, last := ticks[0].Value, ticks[len(ticks)-1].Value
	p.X.Min, p.X.Max = first, last*math.Pow(last/first, 1.0/3)
	wholeDecades(p)
	return save(p, path)
}

// goroutines is how many compete.
func goroutines(sc benchkit.Scene) float64 { return float64(sc.Workers * max(1, sc.Processes)) }

// waits draws what the rounds of a scene waited.
func waits(r *Report, sc benchkit.Scene, path string) error {
	p := newPlot()
	p.X.Label.Text, p.Y.Label.Text = sc.Name, "wait, milliseconds"
	p.Y.Scale = plot.LogScale{}
	var names []string
	shapes := []struct {
		name  string
		wait  func(benchkit.Result) time.Duration
		shape draw.GlyphDrawer
	}{
		{"half the rounds", func(r benchkit.Result) time.Duration { return r.Wait(0.5) }, draw.CircleGlyph{}},
		{"99 % of the rounds", func(r benchkit.Result) time.Duration { return r.Wait(0.99) }, draw.BoxGlyph{}},
		{"longest, median goroutine", benchkit.Result.TypicalLongest, draw.PyramidGlyph{}},
		{"longest", func(r benchkit.Result) time.Duration { return r.Wait(1) }, draw.CrossGlyph{}},
	}
	points := make([]plotter.XYs, len(shapes))
	for _, col := range r.Compared {
		cell := col.Cells[sc.Name]
		if cell == nil || len(cell.Waits) == 0 {
			continue
		}
		for i, s := range shapes {
			points[i] = append(points[i], plotter.XY{X: float64(len(names)), Y: millis(s.wait(cell.Result))})
		}
		names = append(names, col.Name)
	}
	if len(names) == 0 {
		return nil
	}
	for i, s := range shapes {
		dots, err := plotter.NewScatter(points[i])
		if err != nil {
			return fmt.Errorf("draw waits: %w", err)
		}
		dots.Shape, dots.Radius, dots.Color = s.shape, vg.Points(5), palette[[]int{0, 4, 3, 2}[i]]
		p.Add(dots)
		p.Legend.Add(s.name, dots)
	}
	p.NominalX(names...)
	wholeDecades(p)
	p.X.Min, p.X.Max = -0.5, float64(len(names))*1.5-0.5 // the legend has the rest to itself
	return save(p, path)
}

// wholeDecades extends the logarithmic vertical scale so that it begins and ends at a power of
// ten: those are what has a label, and a scale must have a length.
func wholeDecades(p *plot.Plot) {
	low := int(math.Floor(math.Log10(p.Y.Min)))
	high := max(low+1, int(math.Ceil(math.Log10(p.Y.Max))))
	p.Y.Min, p.Y.Max = math.Pow10(low), math.Pow10(high)
	// plot.LogTicks rounds, and may leave out the first.
	var ticks plot.ConstantTicks
	for e := low; e <= high; e++ {
		ticks = append(ticks, plot.Tick{Value: math.Pow10(e), Label: strconv.FormatFloat(math.Pow10(e), 'f', -1, 64)})
		for i := 2; e < high && i < 10; i++ {
			ticks = append(ticks, plot.Tick{Value: float64(i) * math.Pow10(e)})
		}
	}
	p.Y.Tick.Marker = ticks
}

// millis never is 0, which has no place on a logarithmic scale.
func millis(d time.Duration) float64 {
	return max(0.001, float64(d.Microseconds())/1000)
}

func newPlot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White // also where the page is dark
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(2)
	return p
}

func save(p *plot.Plot, path string) error {
	if err := p.Save(pictureWidth, pictureHeight, path); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}
