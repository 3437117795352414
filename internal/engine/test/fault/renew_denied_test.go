package fault_test

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
	redistest.SkipShort(t)
	const lease = 6 * time.Second
	s := redistest.Real(t)
	opt, allow := faultUser(t, s, "u")
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

// A key that an ACL forbids keeps the locks from being renewed that one script call is for. The
// others are renewed all the same, each by itself.
func TestADeniedKeyLosesNoOtherLock(t *testing.T) {
	t.Parallel()
	redistest.SkipShort(t)
	const lease = 2 * time.Second
	s := redistest.Real(t)
	name := redistest.Name(t)
	allow := func(keys ...string) {
		rules := []string{"ACL", "SETUSER", "u", "on", ">secret", "resetkeys", "&*", "+@all"}
		must(t, s.Do(t, append(rules, keys...)...).Error())
	}
	allow("~*")
	opt := s.Option()
	opt.Username, opt.Password = "u", "secret"
	renewed := make(chan locktrace.Renewed, 1000)
	trace := &rlock.Trace{Renewed: func(e locktrace.Renewed) { renewed <- e }}
	ses, err := rlock.Dial(context.Background(), opt, rlock.Config{Lease: lease, Trace: trace})
	must(t, err)
	defer ses.Close()
	ctx := within(t, 30*time.Second)
	var sections []context.Context
	for _, suffix := range []string{"a", "forbidden", "b"} {
		section, _, err := rlock.New(ses, name+suffix).Lock(ctx)
		must(t, err)
		sections = append(sections, section)
	}
	allow("~*"+name+"a*", "~*"+name+"b*")
	good := 0
	for good < 4 { // two locks, twice
		e := locktest.Get(t, renewed, 2*lease, "a renewal")
		switch {
		case e.Err == nil:
			good += e.Claims
		case e.Claims > 1:
			t.Errorf("the renewal of %d locks failed: %v", e.Claims, e.Err)
		}
	}
	locktest.Get(t, sections[1].Done(), 2*lease, "the end of the lock that is forbidden")
	for i, section := range []context.Context{sections[0], sections[2]} {
		if section.Err() != nil {
			t.Errorf("lock %d: %v", i, context.Cause(section))
		}
	}
	allow("~*")
}
