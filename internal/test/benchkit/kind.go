package benchkit

import (
	"context"
	"errors"
)

// Kind is one kind of lock, of any make.
type Kind struct {
	// Name is what it is called in the results, and by what another process finds it.
	Name string

	// Sends are the commands that its clients send, in lower case as INFO commandstats
	// has them. What scripts call is counted there too, and must not be among them.
	// Empty: it does not run on Redis.
	Sends []string

	// Reads is how many of a hundred rounds take the shared side, and Readers how many
	// that side lets in together; 0: any number.
	Reads, Readers int

	// Open connects one process's worth of it: one session, client or locker.
	Open func(ctx context.Context, env Env) (*Handle, error)
}

// Env is what a Kind is opened with.
type Env struct {
	// Addr is the server's host:port.
	Addr string
	// Waiting, if not nil, is called whenever a caller begins to wait, by those
	// kinds that can tell.
	Waiting func()
}

// Handle is an open Kind.
type Handle struct {
	// Worker returns a goroutine's way to the lock with that name. Each goroutine has
	// its own; making it is not measured.
	Worker func(ctx context.Context, name string) (Cycle, error)
	// Close gives everything back, when all workers are done.
	Close func()
}

// Cycle acquires, calls inside, and releases; it blocks until then or until ctx ends. write
// says which side to take, for kinds that have two. An error that matches [ErrGaveUp] says
// that the lock was not had for want of tries; any other ends the measurement.
type Cycle func(ctx context.Context, write bool, inside func()) error

// ErrGaveUp says that a lock with a bounded number of tries has used them up.
var ErrGaveUp = errors.New("benchkit: the lock gave up waiting")

// Find returns the kind with that name.
func Find(kinds []Kind, name string) (Kind, bool) {
	for _, k := range kinds {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}
