// Command publish gives the module the path that it is published under, and makes versions of it.
// CONTRIBUTING.md says how a version is published.
//
//	publish rename example.com/you/relock   the path in all modules, imports, scripts and documents
//	publish release                         the go.mod and go.sum that a version of each module has
//	publish pack DIR                        that version in DIR, which then serves as GOPROXY=file://DIR
//
// The version is rlock.Version. All of them work on the tree that -C names.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	dir := flag.String("C", "../..", "the root of the tree")
	flag.Parse()
	if err := run(*dir, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "publish: %v\n", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("one of: rename PATH, release, pack DIR")

func run(dir string, args []string) error {
	t, err := openTree(dir)
	switch {
	case err != nil:
		return err
	case len(args) == 2 && args[0] == "rename":
		return t.rename(args[1])
	case len(args) == 1 && args[0] == "release":
		return t.release()
	case len(args) == 2 && args[0] == "pack":
		return t.pack(args[1])
	}
	return errUsage
}
