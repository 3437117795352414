package script

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// shared are the snippets of Lua that scripts of every package may include.
//
//go:embed lua/*.lua
var shared embed.FS

// includes is the line by which a script names the snippets that it needs:
//
//	-- include refused, clock
var includes = regexp.MustCompile(`(?m)^-- include (.*)\n`)

// Load makes the script at a path of files. Where the script has an include line, the
// snippets that it names stand instead of the line. They are looked for beside the script
// and then among those of this package, and may include others; none is put in twice.
// Redis has no modules for scripts, and each run pays for every function that the script
// defines, so a script gets what it names and nothing else.
//
// A script or snippet that is missing is a mistake in the program: Load panics.
func Load(files fs.FS, name string) *Script {
	l := loader{files: files, dir: path.Dir(name)}
	src, err := fs.ReadFile(files, name)
	if err != nil {
		panic(fmt.Sprintf("script: %v", err))
	}
	return New(l.expand(string(src), name))
}

type loader struct {
	files fs.FS
	dir   string
	there []string // the snippets that stand in the script already
}

// expand puts snippets where the include line of src is; name is for the panic.
func (l *loader) expand(src, name string) string {
	found := includes.FindAllStringSubmatchIndex(src, -1)
	switch {
	case found == nil:
		return src
	case len(found) > 1:
		panic(fmt.Sprintf("script: %s has %d include lines; one may name several snippets", name, len(found)))
	}
	at := found[0]
	var in strings.Builder
	in.WriteString(src[:at[0]])
	for snippet := range strings.SplitSeq(src[at[2]:at[3]], ", ") {
		if slices.Contains(l.there, snippet) {
			continue
		}
		l.there = append(l.there, snippet)
		in.WriteString(l.expand(l.snippet(snippet, name), snippet))
	}
	in.WriteString(src[at[1]:])
	return in.String()
}

func (l *loader) snippet(name, by string) string {
	src, err := fs.ReadFile(l.files, path.Join(l.dir, name+".lua"))
	if err != nil {
		src, err = shared.ReadFile("lua/" + name + ".lua")
	}
	if err != nil {
		panic(fmt.Sprintf("script: %s includes %q, and there is no such snippet", by, name))
	}
	return string(src)
}
