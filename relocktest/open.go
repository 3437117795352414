package relocktest

import (
	"context"
	"fmt"

	"relock/rlock"
)

// Open is for code that has no testing.TB: an Example, or a program that shows something. It
// starts an embedded Redis and opens a session on it. The function that it returns closes both,
// and all other sessions must be closed by then.
//
// Open panics if the session cannot be opened.
func Open() (*rlock.Session, *Redis, func()) {
	r := newRedis()
	s, err := r.open(rlock.Config{})
	if err != nil {
		r.Stop()
		panic(fmt.Sprintf("relocktest: %v", err))
	}
	return s, r, func() {
		_ = s.Close() // the code that is shown may have closed it, or stopped Redis
		r.Stop()
	}
}

// open opens a session that the caller closes.
func (r *Redis) open(cfg rlock.Config) (*rlock.Session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cfg.Trace = r.watched(cfg.Trace)
	return rlock.Dial(ctx, r.Option(), cfg)
}
