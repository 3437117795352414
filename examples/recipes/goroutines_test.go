package recipes_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// resize has goroutines of its own, which take turns at the index.
func resize(ctx context.Context, album, index *rlock.Mutex, pictures []string, add func(string)) error {
	return album.Do(ctx, func(ctx context.Context) error {
		var wg sync.WaitGroup
		for _, picture := range pictures {
			wg.Go(func() {
				own := rlock.WithoutOwner(ctx) // else a named owner lets all of them in together
				_ = index.Do(own, func(context.Context) error { add(picture); return nil })
			})
		}
		wg.Wait() // before the section ends
		return context.Cause(ctx)
	})
}

// Goroutines of a section that must exclude each other.
func Example_goroutines() {
	session, _, done := relocktest.Open()
	defer done()
	ctx := rlock.WithOwner(context.Background(), "job-7f3a")

	var entries []string
	var alone sync.Mutex
	err := resize(ctx, rlock.New(session, "album"), rlock.New(session, "index"), []string{"a", "b", "c"},
		func(picture string) {
			if !alone.TryLock() {
				fmt.Println("two at once")
				return
			}
			defer alone.Unlock()
			time.Sleep(time.Millisecond) // the work
			entries = append(entries, picture)
		})
	fmt.Println(len(entries), err)
	// Output: 3 <nil>
}
