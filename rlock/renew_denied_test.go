package rlock_test

import (
	"context"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/locktrace"
	"relock/rlock"
	"relock/rwlock"
	"relock/semaphore"
)

// An ACL that forbids the renewal for a while says nothing about who holds the lock: no section
// ends before its lease does, and each goes on when the ACL is mended.
func TestRenewalThatIsDeniedLosesNothing(t *testing.T) {
	t.Parallel()
	const lease = 3 * time.Second
	s := redistest.Real(t)
	allow := func(rules ...string) {
		must(t, s.Do(t, append([]string{"ACL", "SETUSER", "u", "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	}
	allow()
	opt := s.Option()
	opt.Username, opt.Password = "u", "secret"
	denied := make(chan int, 1000)
	trace := &rlock.Trace{Renewed: func(e locktrace.Renewed) { denied <- e.Claims }}
	ses, err := rlock.Dial(context.Background(), opt, rlock.Config{Lease: lease, Trace: trace})
	must(t, err)
	defer ses.Close()
	ctx := within(t, 30*time.Second)
	name := redistest.Name(t)
	plain, _, err := rlock.New(ses, name).Lock(ctx)
	must(t, err)
	rw := rwlock.New(ses, name+"w")
	write, _, err := rw.Lock(ctx)
	must(t, err)
	read, _, err := rwlock.New(ses, name+"r").RLock(ctx)
	must(t, err)
	sem, _, err := semaphore.New(ses, name+"s", 1).Acquire(ctx, 1)
	must(t, err)
	allow("-hexists", "-hmget", "-zscore")
	for range 4 { // of each kind one renewal, at least
		locktest.Get(t, denied, lease, "a renewal")
	}
	allow()
	<-time.After(lease)
	for what, section := range map[string]context.Context{"plain": plain, "write": write, "read": read, "permits": sem} {
		if section.Err() != nil {
			t.Errorf("%s: %v", what, context.Cause(section))
		}
	}
}
