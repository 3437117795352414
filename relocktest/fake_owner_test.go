package relocktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"relock/relocktest"
	"relock/rlock"
)

// fakeAndReal runs fn for a Fake and for a lock that it stands for, each with what takes it away.
func fakeAndReal(t *testing.T, fn func(t *testing.T, l relocktest.Doer, lose func())) {
	t.Run("fake", func(t *testing.T) {
		f := new(relocktest.Fake)
		fn(t, f, func() { f.Lose() })
	})
	t.Run("real", func(t *testing.T) {
		r := relocktest.Start(t)
		m := rlock.New(r.Session(t, rlock.Config{}), "job")
		fn(t, m, func() { r.Lose(t, m) })
	})
}

func nothing(context.Context) error { return nil }

// A Fake lets the same callers re-enter as the lock that it stands for: goroutines of a section which exclude each other
// by WithoutOwner or by names do so with a Fake too, and every caller that has the owner's name is let in.
func TestFakeKnowsOwners(t *testing.T) {
	fakeAndReal(t, func(t *testing.T, l relocktest.Doer, _ func()) {
		other := rlock.New(relocktest.Session(t), "other")
		named := rlock.WithOwner(t.Context(), "a")
		hidden := rlock.WithoutOwner(named)
		kept := errors.New("kept out")
		for _, c := range []struct {
			what  string
			outer context.Context
			inner func(section context.Context) context.Context
			in    bool
		}{
			{"the section", t.Context(), func(ctx context.Context) context.Context { return ctx }, true},
			{"the section, hidden", t.Context(), rlock.WithoutOwner, false},
			{"the section, named", t.Context(), func(ctx context.Context) context.Context { return rlock.WithOwner(ctx, "b") }, false},
			{"a section of a name", named, func(ctx context.Context) context.Context { return ctx }, true},
			{"a section of a name, hidden", named, rlock.WithoutOwner, false},
			{"a section of a name, by another", named, func(ctx context.Context) context.Context { return rlock.WithOwner(ctx, "b") }, false},
			{"a section of a name, named again", named, func(ctx context.Context) context.Context { return rlock.WithOwner(ctx, "a") }, true},
			{"a section of a hidden owner", hidden, func(ctx context.Context) context.Context { return ctx }, true},
			{"a section of a hidden owner, hidden", hidden, rlock.WithoutOwner, false},
			{"the same name", named, func(context.Context) context.Context { return named }, true},
			{"the same name, from elsewhere", named, func(context.Context) context.Context { return rlock.WithOwner(t.Context(), "a") }, true},
			{"another name", named, func(context.Context) context.Context { return rlock.WithOwner(t.Context(), "b") }, false},
		} {
			for _, between := range []bool{false, true} {
				err := l.Do(c.outer, func(section context.Context) error {
					inner := func(section context.Context) error {
						ctx, cancel := context.WithTimeout(c.inner(section), 20*time.Second)
						defer cancel()
						if !c.in { // it would wait for all of that
							ctx, cancel = context.WithTimeout(ctx, 20*time.Millisecond)
							defer cancel()
						}
						if err := l.Do(ctx, nothing); err != nil {
							return errors.Join(kept, err)
						}
						return nil
					}
					if between {
						return other.Do(section, inner)
					}
					return inner(section)
				})
				switch {
				case c.in && err != nil, !c.in && !(errors.Is(err, kept) && errors.Is(err, rlock.ErrNotAcquired)):
					t.Errorf("%s (in a section of another lock: %v): in %v, but %v", c.what, between, c.in, err)
				}
			}
		}
		must(t, l.Do(t.Context(), nothing)) // all have left
		if err := l.Do(rlock.WithOwner(t.Context(), ""), nothing); !errors.Is(err, rlock.ErrArgument) {
			t.Errorf("an empty name: %v", err)
		}
	})
}

// Callers of one name are inside together, and the last of them frees the lock. A loss ends all of them.
func TestFakeCallersOfOneName(t *testing.T) {
	fakeAndReal(t, func(t *testing.T, l relocktest.Doer, lose func()) {
		bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		first, second := rlock.WithOwner(bounded, "a"), rlock.WithOwner(bounded, "a")
		inside, leave, left := make(chan context.Context), make(chan struct{}), make(chan error)
		enter := func() context.Context {
			go func() {
				left <- l.Do(second, func(ctx context.Context) error {
					inside <- ctx
					<-leave
					return nil
				})
			}()
			select {
			case ctx := <-inside:
				return ctx
			case err := <-left:
				t.Fatalf("the second does not get in beside the first: %v", err)
				return nil
			}
		}
		var section context.Context
		must(t, l.Do(first, func(context.Context) error { section = enter(); return nil }))
		if section.Err() != nil {
			t.Error("the first has ended the section of the second:", context.Cause(section))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := l.Do(ctx, nothing); !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("beside the second: %v", err)
		}
		leave <- struct{}{}
		must(t, <-left)

		err := l.Do(first, func(ctx context.Context) error {
			section = enter()
			lose()
			<-section.Done()
			<-ctx.Done()
			return nil
		})
		leave <- struct{}{}
		for what, err := range map[string]error{"the first": err, "the second": <-left} {
			if !errors.Is(err, rlock.ErrLost) {
				t.Errorf("%s, after a loss: %v", what, err)
			}
		}
	})
}

// A lock that is lost is another's at once: the section that has lost it still runs, which is what its
// code must be tested for.
func TestFakeThatIsLostIsFree(t *testing.T) {
	fakeAndReal(t, func(t *testing.T, l relocktest.Doer, lose func()) {
		err := l.Do(t.Context(), func(section context.Context) error {
			lose()
			<-section.Done()
			for what, ctx := range map[string]context.Context{"another": t.Context(), "the caller, again": context.WithoutCancel(section)} {
				ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				if err := l.Do(ctx, nothing); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			return nil
		})
		if !errors.Is(err, rlock.ErrLost) {
			t.Errorf("the lost section: %v", err)
		}
		must(t, l.Do(t.Context(), nothing))
	})
}

// A section inside of another ends with a loss also where it is shielded from the end of the context around it.
func TestFakeLosesAShieldedSection(t *testing.T) {
	fakeAndReal(t, func(t *testing.T, l relocktest.Doer, lose func()) {
		patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		err := l.Do(t.Context(), func(outer context.Context) error {
			return l.Do(context.WithoutCancel(outer), func(inner context.Context) error {
				lose()
				select {
				case <-inner.Done():
				case <-patient.Done():
				}
				if cause := context.Cause(inner); !errors.Is(cause, rlock.ErrLost) {
					t.Errorf("the section inside: %v", cause)
				}
				return nil
			})
		})
		if !errors.Is(err, rlock.ErrLost) {
			t.Error("the lost section:", err)
		}
	})
}
