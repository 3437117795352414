// Command pair locks and unlocks a Mutex once more than before, and writes which functions ran
// meanwhile into the directory of its argument, for go tool covdata. With -direct the command goes over
// the direct connection, as it does where the lock's Redis is a single server and the caller is alone;
// else over the shared one, as in a Cluster. It must be built with -cover -covermode=atomic.
package main

import (
	"context"
	"flag"
	"log"
	"runtime/coverage"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"relock/rlock"
)

func main() {
	direct := flag.Bool("direct", false, "whether the server is one by itself")
	flag.Parse()
	if err := run(*direct, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

func run(direct bool, dir string) error {
	server, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer server.Close()
	option := rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true, ForceSingleClient: direct}
	s, err := rlock.Dial(context.Background(), option, rlock.Config{})
	if err != nil {
		return err
	}
	defer s.Close()
	m := rlock.New(s, "x")
	// The first pairs arm the watchdog, and find what is reused later.
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
