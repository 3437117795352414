package scriptfuzz

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"relock/internal/script"
)

const root = "../../../" // of the repository

var sources sync.Map

// source returns a script as it is sent.
func source(name string) *script.Script {
	sc, ok := sources.Load(name)
	if !ok {
		sc, _ = sources.LoadOrStore(name, script.Load(os.DirFS(root+path.Dir(name)), path.Base(name)))
	}
	return sc.(*script.Script)
}

// run makes a state and a call of one script out of data, runs it, and returns what must not be.
func (r *redis) run(row *scriptRow, data []byte) error {
	w := newWorld(data, r.ms())
	c := row.calls[w.n(len(row.calls))]
	if c.as != nil {
		c.as(w)
	}
	var keys []key
	for _, k := range c.keys {
		keys = append(keys, k(w)...)
	}
	argv := join(w, c.args)
	cmds, names := [][]string{{"FLUSHALL"}}, make([]string, len(keys))
	for i, k := range keys {
		if !slices.Contains(names, k.name) {
			cmds = append(cmds, k.setUp(w)...)
		}
		names[i] = k.name
	}
	for i, reply := range r.do(cmds...) {
		if err, ok := reply.(error); ok {
			return fmt.Errorf("%q: %w", cmds[i], err)
		}
	}
	before, err := r.image()
	if err != nil {
		return err
	}
	reply := r.eval(source(row.path), names, argv)
	after, err := r.image()
	if err != nil {
		return err
	}
	j := &judgement{row: row, keys: keys, argv: argv, reply: reply, before: before, after: after, exact: r.exact}
	if _, refused := reply.(error); !refused {
		r.answers++
	}
	if j.granted() {
		r.grants++
	}
	if what := j.fault(); what != "" {
		return fmt.Errorf("%s: %s\nkeys   %q\nARGV   %q\nreply  %s\nbefore %s\nafter  %s\ndata   %q",
			row.path, what, names, argv, words(reply), list(before), list(after), data)
	}
	return nil
}

func list(all map[string]image) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "\n  %q %s ttl %s: %s", name, all[name].kind, all[name].ttl, all[name].holds)
	}
	return b.String()
}
