// Command path goes the path of its first argument, which is one of [calls.Paths], and writes which functions
// ran meanwhile into the directory of the second, for go tool covdata. It must be built with -cover
// -covermode=atomic. It is a program, and no test, since a test has no data of its coverage before it ends.
package main

import (
	"flag"
	"log"
	"runtime/coverage"
	"testing"
	"testing/synctest"

	"relock/internal/test/calls"
)

func main() {
	flag.Parse()
	name, dir := flag.Arg(0), flag.Arg(1)
	after := func() error {
		if err := coverage.WriteMetaDir(dir); err != nil {
			return err
		}
		return coverage.WriteCountersDir(dir)
	}
	for _, p := range calls.Paths {
		if p.Name != name {
			continue
		}
		run := func(t *testing.T) { p.Go(t, coverage.ClearCounters, after) }
		if !p.Sockets { // a bubble needs a test to be in
			inside := run
			run = func(t *testing.T) { synctest.Test(t, inside) }
		}
		all := func(_, _ string) (bool, error) { return true, nil }
		testing.Main(all, []testing.InternalTest{{Name: name, F: run}}, nil, nil) // it does not return
	}
	log.Fatalf("there is no path %q", name)
}
