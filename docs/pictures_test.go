package docs_test

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A drawing is what of an SVG is checked.
type drawing struct {
	Width  string `xml:"width,attr"`
	Height string `xml:"height,attr"`
	Rects  []struct {
		Width  string `xml:"width,attr"`
		Height string `xml:"height,attr"`
		Fill   string `xml:"fill,attr"`
	} `xml:"rect"`
}

var (
	picture  = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+\.svg)\)`)
	fontSize = regexp.MustCompile(`font-size="(\d+)`)
)

// Each picture of a page is well-formed, brings its own background, since pages are read on dark ones too,
// has text that is large enough, and is described for those who do not see it.
func TestPicturesAreReadable(t *testing.T) {
	shown := map[string]bool{}
	for name, text := range pages(t) {
		for _, m := range picture.FindAllStringSubmatch(text, -1) {
			file := path.Join(path.Dir(name), m[2])
			if shown[file] = true; len(strings.Fields(m[1])) < 4 {
				t.Errorf("%s: %s is described as %q only", name, file, m[1])
			}
		}
	}
	files, err := fs.Glob(root, "docs/*.svg")
	if err != nil || len(files) < 5 {
		t.Fatalf("pictures: %q, %v", files, err)
	}
	for _, file := range files {
		if !shown[file] {
			t.Errorf("no page shows %s", file)
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		for elements := xml.NewDecoder(strings.NewReader(string(text))); ; { // Unmarshal stops behind the root
			if _, err := elements.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		var d drawing
		if err := xml.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(d.Rects) == 0 || d.Width == "" || d.Rects[0].Width != d.Width || d.Rects[0].Height != d.Height || d.Rects[0].Fill == "" {
			t.Errorf("%s does not begin with a background of its size", file)
		}
		for _, m := range fontSize.FindAllStringSubmatch(string(text), -1) {
			if n, err := strconv.Atoi(m[1]); err != nil || n < 11 {
				t.Errorf("%s has text of the size %s", file, m[1])
			}
		}
	}
}
