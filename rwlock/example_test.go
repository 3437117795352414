package rwlock_test

import (
	"context"
	"errors"
	"fmt"

	"relock/relocktest"
	"relock/rlock"
	"relock/rwlock"
)

// The usual way: RDo around what reads, Do around what writes.
func Example() {
	session, _, done := relocktest.Open()
	defer done()
	m := rwlock.New(session, "prices")
	ctx := context.Background()

	prices := map[string]int{"tea": 3}
	err := m.Do(ctx, func(ctx context.Context) error {
		prices["tea"] = 4
		return ctx.Err() // nil for as long as the lock is held
	})
	fmt.Println("write:", err)
	err = m.RDo(ctx, func(context.Context) error {
		fmt.Println("tea costs", prices["tea"])
		return nil
	})
	fmt.Println("read:", err)
	// Output:
	// write: <nil>
	// tea costs 4
	// read: <nil>
}

// Readers share the lock.
func ExampleRWMutex_RLock() {
	session, _, done := relocktest.Open()
	defer done()
	m := rwlock.New(session, "catalogue")
	ctx := context.Background()

	_, first, _ := m.RLock(ctx)
	_, second, err := m.RLock(ctx)
	fmt.Println("a second reader:", err)
	_, _, err = m.TryLock(ctx)
	fmt.Println("a writer beside them:", errors.Is(err, rlock.ErrNotAcquired))
	first.Unlock()
	second.Unlock()
	// Output:
	// a second reader: <nil>
	// a writer beside them: true
}

// A writer is alone. Functions that it passes its context to may take either side.
func ExampleRWMutex_Lock() {
	session, _, done := relocktest.Open()
	defer done()
	m := rwlock.New(session, "catalogue")
	ctx := context.Background()

	section, hold, err := m.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _, err = m.TryRLock(ctx)
	fmt.Println("a reader beside it:", errors.Is(err, rlock.ErrNotAcquired))
	fmt.Println("its own read:", m.RDo(section, func(context.Context) error { return nil }))
	fmt.Println("unlock:", hold.Unlock())
	// Output:
	// a reader beside it: true
	// its own read: <nil>
	// unlock: <nil>
}

// From write to read without letting a writer in between: take the read side too, then
// unlock the write side.
func ExampleRWMutex_Lock_downgrade() {
	session, _, done := relocktest.Open()
	defer done()
	m := rwlock.New(session, "index")
	ctx := context.Background()

	section, write, _ := m.Lock(ctx)
	_, read, _ := m.RLock(section)
	write.Unlock()
	fmt.Println("still held:", section.Err() == nil)
	_, other, err := m.TryRLock(ctx)
	fmt.Println("another reader:", err)
	other.Unlock()
	read.Unlock()
	fmt.Println("section:", context.Cause(section))
	// Output:
	// still held: true
	// another reader: <nil>
	// section: rlock: lock released
}

// There is no upgrade from read to write: two readers that waited for each other to leave
// would deadlock.
func ExampleRWMutex_Lock_upgrade() {
	session, _, done := relocktest.Open()
	defer done()
	m := rwlock.New(session, "index")

	section, read, _ := m.RLock(context.Background())
	_, _, err := m.Lock(section)
	fmt.Println(errors.Is(err, rwlock.ErrUpgrade))
	read.Unlock()
	// Output: true
}

// State is for operators.
func ExampleRWMutex_State() {
	session, _, done := relocktest.Open()
	defer done()
	m := rwlock.New(session, "report")
	ctx := context.Background()

	alice, h1, _ := m.RLock(rlock.WithOwner(ctx, "alice"))
	_, h2, _ := m.RLock(alice)
	_, h3, _ := m.RLock(rlock.WithOwner(ctx, "bob"))
	state, _ := m.State(ctx)
	fmt.Println(state.Mode, state.Owners)
	for _, h := range []*rlock.Hold{h1, h2, h3} {
		h.Unlock()
	}
	state, _ = m.State(ctx)
	fmt.Printf("%q %v %v\n", state.Mode, state.Owners, state.TTL)
	// Output:
	// read map[alice:2 bob:1]
	// "" map[] 0s
}
