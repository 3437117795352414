package relocktest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"relock/fairlock"
	"relock/relocktest"
	"relock/rlock"
	"relock/rwlock"
)

// What the fake stands for.
var (
	_ relocktest.Doer = (*rlock.Mutex)(nil)
	_ relocktest.Doer = (*fairlock.Mutex)(nil)
	_ relocktest.Doer = (*rwlock.RWMutex)(nil)
	_ relocktest.Doer = (*relocktest.Fake)(nil)
)

func TestFakeExcludes(t *testing.T) {
	var f relocktest.Fake
	var wg sync.WaitGroup
	inside, total := 0, 0
	for range 8 {
		wg.Go(func() {
			for range 200 {
				err := f.Do(t.Context(), func(context.Context) error {
					inside++
					if inside != 1 {
						return errors.New("two inside")
					}
					total++
					inside--
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if total != 1600 || f.Entered() != 1600 || f.Held() {
		t.Errorf("%d sections, Entered %d, Held %v", total, f.Entered(), f.Held())
	}
}

// The fake tells of misuse as a real lock does.
func TestFakeRefusesBadArguments(t *testing.T) {
	s := relocktest.Session(t)
	for what, l := range map[string]relocktest.Doer{"fake": new(relocktest.Fake), "lock": rlock.New(s, "x")} {
		var none context.Context
		if err := l.Do(none, func(context.Context) error { return nil }); !errors.Is(err, rlock.ErrArgument) {
			t.Errorf("%s, nil ctx: %v", what, err)
		}
		if err := l.Do(t.Context(), nil); !errors.Is(err, rlock.ErrArgument) {
			t.Errorf("%s, nil fn: %v", what, err)
		}
	}
}

func TestFakeReenters(t *testing.T) {
	var f, other relocktest.Fake
	nested := false
	err := f.Do(t.Context(), func(ctx context.Context) error {
		return other.Do(ctx, func(ctx context.Context) error {
			return f.Do(ctx, func(context.Context) error { nested = true; return nil })
		})
	})
	if err != nil || !nested || f.Entered() != 1 {
		t.Errorf("err %v, nested %v, entered %d", err, nested, f.Entered())
	}
}

func TestFakeWaitsAndGivesUp(t *testing.T) {
	var f relocktest.Fake
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error, 1)
	err := f.Do(t.Context(), func(section context.Context) error {
		go func() {
			gaveUp <- f.Do(ctx, func(context.Context) error { return errors.New("it ran") })
		}()
		if err := f.AwaitWaiters(section, 1); err != nil {
			return err
		}
		cancel()
		err := <-gaveUp
		if !errors.Is(err, rlock.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
			t.Errorf("the waiter got %v, want ErrNotAcquired and Canceled", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A Fake that is held keeps a caller with Wait for as long as a real lock does, and no longer; and it refuses the options that
// a real one refuses. A recipe that runs a job once in an hour gives up by Wait(0).
func TestFakeWaitsAsLongAsWaitSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for what, l := range map[string]relocktest.Doer{"fake": new(relocktest.Fake), "lock": rlock.New(relocktest.Session(t), "x")} {
			must(t, l.Do(ctx, func(context.Context) error {
				for _, wait := range []time.Duration{0, time.Minute} {
					begun := time.Now()
					err := l.Do(ctx, func(context.Context) error { return errors.New("it ran") }, rlock.Wait(wait))
					if took := time.Since(begun); !errors.Is(err, rlock.ErrNotAcquired) || took < wait || took > wait+2*time.Second {
						t.Errorf("%s: Wait(%v) ended after %v: %v", what, wait, took, err)
					}
				}
				return nil
			}))
			for _, wrong := range []rlock.LockOption{nil, rlock.Wait(-1), rlock.Lease(0)} {
				if err := l.Do(ctx, func(context.Context) error { return nil }, wrong); !errors.Is(err, rlock.ErrArgument) {
					t.Errorf("%s: a wrong option: %v", what, err)
				}
			}
			must(t, l.Do(ctx, func(context.Context) error { return nil }, rlock.Wait(0), rlock.AsyncRelease()))
		}
	})
}

func TestFakeLoses(t *testing.T) {
	var f relocktest.Fake
	if f.Lose() {
		t.Error("Lose of a free lock reports a section")
	}
	mine := errors.New("mine")
	err := f.Do(t.Context(), func(ctx context.Context) error {
		if !f.Lose() {
			t.Error("Lose reports no section")
		}
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, rlock.ErrLost) {
			t.Errorf("the cause is %v", cause)
		}
		return mine
	})
	if !errors.Is(err, mine) || !errors.Is(err, rlock.ErrLost) {
		t.Errorf("Do: %v, want both errors", err)
	}
	if err := f.Do(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("the section after: %v", err)
	}
}

func TestFakeRefuses(t *testing.T) {
	var f relocktest.Fake
	f.Refuse(rlock.ErrNotAcquired)
	ran := false
	run := func(context.Context) error { ran = true; return nil }
	if err := f.Do(t.Context(), run); !errors.Is(err, rlock.ErrNotAcquired) || ran {
		t.Errorf("Do: %v, ran %v", err, ran)
	}
	f.Refuse(nil)
	if err := f.Do(t.Context(), run); err != nil || !ran {
		t.Errorf("Do: %v, ran %v", err, ran)
	}
}

// A nested Do is refused in an outage as any other, by a Fake as by the lock that it stands for, and the section
// around it goes on.
func TestFakeRefusesANestedSection(t *testing.T) {
	t.Parallel()
	r, fake := relocktest.Start(t), new(relocktest.Fake)
	for name, c := range map[string]struct {
		lock   relocktest.Doer
		outage func(begins bool)
	}{
		"real": {rlock.New(r.Session(t, rlock.Config{}), "job"), func(begins bool) {
			r.Refuse(map[bool]string{true: "LOADING Redis is loading the dataset in memory"}[begins])
		}},
		"fake": {fake, func(begins bool) {
			fake.Refuse(map[bool]error{true: rlock.ErrUnavailable}[begins])
		}},
	} {
		must(t, c.lock.Do(t.Context(), func(section context.Context) error {
			c.outage(true)
			err := c.lock.Do(section, func(context.Context) error { t.Error(name, ": it runs"); return nil }, rlock.Wait(0))
			if !errors.Is(err, rlock.ErrUnavailable) {
				t.Errorf("%s: in an outage: %v", name, err)
			}
			if section.Err() != nil {
				t.Errorf("%s: the section around it: %v", name, context.Cause(section))
			}
			c.outage(false)
			return c.lock.Do(section, func(context.Context) error { return nil })
		}))
	}
}

func TestFakeIsFreeAfterAPanic(t *testing.T) {
	var f relocktest.Fake
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = f.Do(t.Context(), func(context.Context) error { panic("boom") })
	}()
	if f.Held() {
		t.Error("held after a panic")
	}
}

// A Fake and a real lock agree on contexts that have ended, or whose section has.
func TestFakeAndContextsThatAreOver(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]relocktest.Doer{"fake": new(relocktest.Fake), "real": rlock.New(relocktest.Session(t), "job")} {
		var before context.Context
		must(t, d.Do(t.Context(), func(ctx context.Context) error { before = ctx; return nil }))
		never := func(context.Context) error { t.Error(name, ": it runs"); return nil }
		if err := d.Do(before, never); !errors.Is(err, context.Canceled) || errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("%s: in a section that has ended: %v", name, err)
		}
		must(t, d.Do(t.Context(), func(context.Context) error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(before), 10*time.Millisecond)
			defer cancel()
			if err := d.Do(ctx, never); !errors.Is(err, rlock.ErrNotAcquired) {
				t.Errorf("%s: beside a holder, out of an earlier section: %v", name, err)
			}
			return nil
		}))
		must(t, d.Do(context.WithoutCancel(before), func(context.Context) error { return nil })) // it is free
	}
}

// A nested section of a Fake tells of the loss as that of a real lock does, by which code that returns
// between the two is tested.
func TestFakeLosesANestedSection(t *testing.T) {
	r, fake := relocktest.Start(t), new(relocktest.Fake)
	lock := rlock.New(r.Session(t, rlock.Config{}), "job")
	for name, l := range map[string]struct {
		relocktest.Doer
		lose func()
	}{"fake": {fake, func() { fake.Lose() }}, "real": {lock, func() { r.Lose(t, lock) }}} {
		mine := errors.New("mine")
		err := l.Do(t.Context(), func(ctx context.Context) error {
			must(t, l.Do(ctx, func(context.Context) error { return nil })) // before the loss
			err := l.Do(ctx, func(ctx context.Context) error {
				l.lose()
				<-ctx.Done()
				return mine
			})
			if !errors.Is(err, mine) || !errors.Is(err, rlock.ErrLost) {
				t.Errorf("%s: the nested Do: %v, want both errors", name, err)
			}
			return nil
		})
		if !errors.Is(err, rlock.ErrLost) {
			t.Errorf("%s: the outer Do: %v, want ErrLost", name, err)
		}
		must(t, l.Do(t.Context(), func(context.Context) error { return nil }))
	}
}
