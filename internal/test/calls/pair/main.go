// Command pair locks and unlocks a Mutex once more than before, and writes which functions ran
// meanwhile into the directory of its argument, for go tool covdata. It must be built with
// -cover -covermode=atomic.
package main

import (
	"context"
	"log"
	"os"
	"runtime/coverage"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/rlock"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	option := rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true}
	s, err := rlock.Dial(context.Background(), option, rlock.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	m := rlock.New(s, "x")
	// The first pairs build the name of the channel, and arm the watchdog.
	for range 100 {
		if err := pair(m); err != nil {
			return err
		}
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := pair(m); err != nil {
		return err
	}
	if err := coverage.WriteMetaDir(dir); err != nil {
		return err
	}
	return coverage.WriteCountersDir(dir)
}

// pair is what a service does: a context that can be cancelled, no options.
func pair(m *rlock.Mutex) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, hold, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return hold.Unlock()
}
