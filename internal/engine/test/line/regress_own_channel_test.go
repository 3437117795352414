package line_test

import (
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// Users that may publish on the channels of no session but their own cannot tell each other anything. A release
// then says on the lock's channel that the lock is free. Also the session that was the second hears that, when it has become
// the first: it does not wait for its look (scenario 27).
func TestTheSecondOfALineThatCannotBeToldHearsOfTheRelease(t *testing.T) {
	redistest.SkipShort(t)
	t.Parallel()
	s := redistest.Real(t)
	ctx := within(t, 2*time.Minute)
	var all []*rlock.Mutex
	for _, id := range []string{"one", "two", "three"} {
		must(t, s.Do(t, "ACL", "SETUSER", id, "on", ">secret", "~*", "resetchannels", "&relock_session:"+id,
			"&redisson_lock__channel:*", "+@all").Error())
		opt := s.Option()
		opt.Username, opt.Password = id, "secret"
		ses, err := rlock.Dial(ctx, opt, rlock.Config{ID: id, PollFloor: time.Minute})
		must(t, err)
		t.Cleanup(func() { must(t, ses.Close()) })
		all = append(all, rlock.New(ses, "x"))
	}
	_, h, err := all[0].Lock(ctx)
	must(t, err)
	first := locktest.GoLock(all[1], ctx)
	locktest.AwaitInLine(t, s, "x", all[1].Session())
	second := locktest.GoLock(all[2], ctx)
	locktest.AwaitInLine(t, s, "x", all[2].Session())
	locktest.Subscribed(t, s, len(all)) // the first listens to the lock's channel
	must(t, h.Unlock())
	got := locktest.Get(t, first, 20*time.Second, "the first's Lock")
	must(t, got.Err)
	must(t, got.Hold.Unlock())
	got = locktest.Get(t, second, 20*time.Second, "the second's Lock")
	must(t, got.Err)
	must(t, got.Hold.Unlock())
}
