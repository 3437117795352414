package rlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// An ACL that is narrowed while a session runs has Redis end a script in the middle: the lock is taken
// already, and nothing says when it ends. So what such an attempt may have taken is given back.
func TestALockThatIsDeniedMidwayIsGivenBack(t *testing.T) {
	t.Parallel()
	s := redistest.Real(t)
	allow := func(rules ...string) {
		must(t, s.Do(t, append([]string{"ACL", "SETUSER", "midway", "on", ">secret", "~*", "&*", "+@all"}, rules...)...).Error())
	}
	allow()
	opt := s.Option()
	opt.Username, opt.Password = "midway", "secret"
	ses, err := rlock.Dial(context.Background(), opt, rlock.Config{})
	must(t, err)
	defer ses.Close()
	name := redistest.Name(t)
	plain, rw := rlock.New(ses, name), rwlock.New(ses, name+"rw")
	named := func(ctx context.Context) context.Context { return rlock.WithOwner(ctx, "somebody") }
	ctx := within(t, 30*time.Second)
	for what, lock := range map[string]func() (context.Context, *rlock.Hold, error){
		"plain":     func() (context.Context, *rlock.Hold, error) { return plain.Lock(ctx) },
		"try":       func() (context.Context, *rlock.Hold, error) { return plain.TryLock(ctx) },
		"named":     func() (context.Context, *rlock.Hold, error) { return plain.Lock(named(ctx)) },
		"fenced":    func() (context.Context, *rlock.Hold, error) { return rlock.New(ses, name, rlock.Fenced()).Lock(ctx) },
		"fair":      func() (context.Context, *rlock.Hold, error) { return fairlock.New(ses, name).Lock(ctx) },
		"fair try":  func() (context.Context, *rlock.Hold, error) { return fairlock.New(ses, name).TryLock(ctx) },
		"read":      func() (context.Context, *rlock.Hold, error) { return rw.RLock(ctx) },
		"write":     func() (context.Context, *rlock.Hold, error) { return rw.Lock(ctx) },
		"read name": func() (context.Context, *rlock.Hold, error) { return rw.RLock(named(ctx)) },
	} {
		allow("-pexpire")
		if _, _, err := lock(); !errors.Is(err, rlock.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", what, err)
		}
		allow()
		redistest.Eventually(t, 5*time.Second, what+": given back", func() bool {
			return !slices.ContainsFunc(s.Keys(t), func(key string) bool { // the tokens go on
				return strings.Contains(key, name) && !strings.Contains(key, "token")
			})
		})
	}
}
