package scriptfuzz

import (
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// rowOf returns the row of a script by its path; of another text any.
func rowOf(name string) *scriptRow {
	for i := range table {
		if table[i].path == name {
			return &table[i]
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return &table[h.Sum32()%uint32(len(table))]
}

// FuzzScripts runs the script that name tells on what data makes; see the package comment.
func FuzzScripts(f *testing.F) {
	for i := range table {
		f.Add(table[i].path, []byte{})
		f.Add(table[i].path, []byte("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18"))
	}
	r := inMemory(f)
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if err := r.run(rowOf(name), data); err != nil {
			t.Error(err)
		}
	})
}

// walk is for how long each script is run on random states, and leastRuns how often at least. The race detector has
// nothing to find there.
var walk = map[bool]time.Duration{false: 600 * time.Millisecond, true: 200 * time.Millisecond}[redistest.Race]

const leastRuns = 300

// cores has room for as many as run at a time.
var cores = make(chan struct{}, runtime.NumCPU())

// Each script keeps what the package comment says on random states, always the same ones.
func TestScriptsOnRandomStates(t *testing.T) {
	for i := range table {
		row := &table[i]
		t.Run(strings.NewReplacer("/lua/", ".", "/", ".", ".lua", "").Replace(row.path), func(t *testing.T) {
			t.Parallel()
			cores <- struct{}{}
			defer func() { <-cores }()
			r, rng := inMemory(t), rand.NewChaCha8([32]byte{byte(i)})
			data, runs := make([]byte, 250), 0
			for end := time.Now().Add(walk); runs < leastRuns || time.Now().Before(end); runs++ {
				_, _ = rng.Read(data)
				if err := r.run(row, data); err != nil {
					t.Fatal(err)
				}
			}
			if r.answers == 0 || row.grants != nil && r.grants == 0 {
				t.Errorf("of %d runs %d were answered, and %d granted", runs, r.answers, r.grants)
			}
		})
	}
}

// The same holds on a real server, for the first of those states of each script.
func TestScriptsOnARealServer(t *testing.T) {
	r := onServer(t, redistest.Real(t))
	for i := range table {
		rng, data := rand.NewChaCha8([32]byte{byte(i)}), make([]byte, 250)
		for range redistest.Rounds(300) {
			_, _ = rng.Read(data)
			if err := r.run(&table[i], data); err != nil {
				t.Error(err)
				break
			}
		}
	}
}

// The table has all scripts of the module: those files that no other one includes.
func TestTheTableHasEveryScript(t *testing.T) {
	includes := regexp.MustCompile(`(?m)^-- include (.*)$`)
	var files []string
	included := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".lua" || filepath.Base(filepath.Dir(path)) != "lua" {
			return err
		}
		src, err := os.ReadFile(path)
		files = append(files, filepath.ToSlash(strings.TrimPrefix(path, root)))
		for _, m := range includes.FindAllStringSubmatch(string(src), -1) {
			for _, name := range strings.Split(m[1], ", ") {
				beside := filepath.Join(filepath.Dir(path), name+".lua")
				if _, err := os.Stat(beside); err != nil {
					beside = filepath.Join(root, "internal/script/lua", name+".lua")
				}
				included[filepath.ToSlash(strings.TrimPrefix(beside, root))] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range table {
		listed = append(listed, row.path)
	}
	for _, file := range files {
		if !included[file] && !slices.Contains(listed, file) {
			t.Errorf("the table has no row for %s", file)
		}
	}
	for _, path := range listed {
		if !slices.Contains(files, path) {
			t.Errorf("the table has a row for %s, which there is not", path)
		}
	}
}
