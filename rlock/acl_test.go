package rlock_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"relock/internal/redistest"
	"relock/rlock"
)

// The ACL that the README gives is enough to run everything (R29).
func TestDocumentedACLIsEnough(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	block := regexp.MustCompile("(?s)```\nACL SETUSER (.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("the README has no ACL SETUSER block")
	}
	s := redistest.Real(t)
	rule := append([]string{"ACL", "SETUSER"}, strings.Fields(string(block[1]))...)
	must(t, s.Do(t, rule...).Error())
	must(t, s.Do(t, "ACL", "LOG", "RESET").Error())

	opt := s.Option()
	opt.Username, opt.Password = "locks", "secret"
	ctx := within(t, 30*time.Second)
	open := func() *rlock.Session {
		ses, err := rlock.Dial(ctx, opt, rlock.Config{Prefix: "app:", Lease: 300 * time.Millisecond, PollFloor: time.Minute})
		must(t, err)
		t.Cleanup(func() { must(t, ses.Close()) })
		return ses
	}
	a, b := open(), open()
	for _, ctx := range []context.Context{ctx, rlock.WithOwner(ctx, "me")} {
		section, h, err := rlock.New(a, "x", rlock.Fenced()).Lock(ctx)
		must(t, err)
		_, nested, err := rlock.New(a, "x").Lock(section, rlock.Lease(time.Minute))
		must(t, err)
		must(t, nested.Extend(ctx, 2*time.Minute))
		must(t, nested.Unlock())
		_, _, err = rlock.New(b, "x").Lock(context.Background(), rlock.Wait(600*time.Millisecond)) // renewed meanwhile
		if !errors.Is(err, rlock.ErrNotAcquired) {
			t.Errorf("a held lock: %v", err)
		}
		in := make(chan error, 1)
		go func() {
			_, h, err := rlock.New(b, "x").Lock(rlock.WithOwner(ctx, "another"))
			if err == nil {
				err = h.Unlock()
			}
			in <- err
		}()
		redistest.Eventually(t, 5*time.Second, "the waiter to listen", func() bool { return len(s.Channels(t)) == 3 })
		if st, err := rlock.New(b, "x").State(ctx); err != nil || len(st.Owners) != 1 {
			t.Errorf("State: %+v, %v", st, err)
		}
		_, err = rlock.New(b, "x").ForceUnlock(ctx)
		must(t, err)
		<-section.Done()
		must(t, <-in)
		if err := h.Unlock(); !errors.Is(err, rlock.ErrLost) {
			t.Errorf("Unlock after ForceUnlock: %v", err)
		}
	}
	denied, err := s.Do(t, "ACL", "LOG").ToArray()
	must(t, err)
	for _, d := range denied {
		entry, _ := d.AsStrMap()
		t.Errorf("denied: %v %v", entry["reason"], entry["object"])
	}
}
