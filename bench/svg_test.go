package main

import (
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/test/benchkit"
)

// A box is where a text of a picture lies, with a wide font.
type box struct {
	text                     string
	left, top, right, bottom float64
}

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// textsOf reads a picture: the box that it shows, and the boxes of its texts.
func textsOf(t *testing.T, path string) (all box, texts []box) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var picture struct {
		ViewBox string `xml:"viewBox,attr"`
		Font    string `xml:"font-family,attr"`
		Texts   []struct {
			X      string `xml:"x,attr"`
			Y      string `xml:"y,attr"`
			Size   string `xml:"font-size,attr"`
			Anchor string `xml:"text-anchor,attr"`
			Text   string `xml:",chardata"`
		} `xml:"text"`
	}
	if err := xml.Unmarshal(data, &picture); err != nil {
		t.Fatal(err)
	}
	if picture.Font != "sans-serif" {
		t.Errorf("%s asks for the font %q, which not every place has", path, picture.Font)
	}
	sides := strings.Fields(picture.ViewBox)
	if len(sides) != 4 {
		t.Fatalf("%s: viewBox %q", path, picture.ViewBox)
	}
	all = box{"the picture", number(t, sides[0]), number(t, sides[1]), number(t, sides[2]), number(t, sides[3])}
	for _, x := range picture.Texts {
		size, at, base := number(t, x.Size), number(t, x.X), number(t, x.Y)
		width := float64(len([]rune(x.Text))) * em * size
		left := at - map[string]float64{begins: 0, middle: width / 2, ends: width}[x.Anchor]
		texts = append(texts, box{x.Text, left, base - size, left + width, base + size/4})
	}
	return all, texts
}

// No text of a picture leaves it or meets another one, whatever was measured.
func TestTextsOfPicturesHaveRoom(t *testing.T) {
	for _, span := range [][2]float64{{0.0001, 1}, {0.001, 1000}, {0.5, 2}, {1, 100_000}} {
		dir := t.TempDir()
		if err := pictures(sample(span[0], span[1]), dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{pictureOne, pictureFour, pictureWaits} {
			all, texts := textsOf(t, filepath.Join(dir, name))
			seen := map[string]bool{}
			for i, b := range texts {
				seen[b.text] = true
				if b.left < all.left || b.top < all.top || b.right > all.right || b.bottom > all.bottom {
					t.Errorf("%v, %s: %q leaves the picture: %+v", span, name, b.text, b)
				}
				for _, o := range texts[:i] {
					if b.meets(o) {
						t.Errorf("%v, %s: %q lies on %q", span, name, b.text, o.text)
					}
				}
			}
			for _, k := range compared() {
				if !seen[k.Name] {
					t.Errorf("%v, %s does not name %s", span, name, k.Name)
				}
			}
		}
	}
}

// sample is a report of figures that stretch the pictures: the widest and the narrowest ranges,
// and all names.
func sample(low, high float64) *Report {
	r := &Report{}
	all := compared()
	for i, k := range all {
		col := &Column{Name: k.Name, Ours: isOurs(k), Cells: map[string]*benchkit.Cell{}}
		for j, sc := range append(append([]benchkit.Scene{}, inOne...), inFour...) {
			v := low * math.Pow(high/low, float64(i*8+j)/float64(len(all)*8))
			wait := time.Duration(v * float64(time.Millisecond))
			col.Cells[sc.Name] = &benchkit.Cell{
				Scene: sc, Base: 1,
				Result: benchkit.Result{
					Ops: int(v * 1e6), Elapsed: 1e6 * time.Second,
					Waits: []time.Duration{wait, wait, 2 * wait, 30 * wait}, Longest: []time.Duration{5 * wait},
				},
			}
		}
		r.Compared = append(r.Compared, col)
	}
	return r
}
