package locktest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/rlock"
)

// Patience bounds what should happen at once: long enough for a stalled CI
// machine, and shorter than any clock in a test that waits for a message.
const Patience = 20 * time.Second

// Slow is a Config in which nothing happens by the clock within Patience: a
// waiter looks again only when told to, and renewals are far apart.
func Slow() rlock.Config {
	return rlock.Config{Lease: 3 * time.Minute, PollFloor: time.Minute}
}

// Polls is a Config in which waiters look by the clock, at times that a test can tell.
func Polls() rlock.Config {
	return rlock.Config{Lease: time.Hour, PollFloor: time.Hour, Polling: Every(10 * time.Millisecond)}
}

// Every is a Backoff without jitter.
func Every(d time.Duration) rlock.Backoff { return func(int) time.Duration { return d } }

// CannotWork checks that both ways to a session say what is wrong, and what to do.
func CannotWork(t *testing.T, what string, opt rueidis.ClientOption, cfg rlock.Config, remedy string) {
	t.Helper()
	ctx := Within(t, 20*time.Second)
	ses, err := rlock.Dial(ctx, opt, cfg)
	if err == nil {
		Must(t, ses.Close())
	}
	if !errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("%s, Dial: %v", what, err)
	}
	client, err := rueidis.NewClient(opt)
	if err != nil {
		return // there is no client to make a session of
	}
	defer client.Close()
	ses, err = rlock.NewSession(ctx, client, cfg)
	if err == nil {
		Must(t, ses.Close())
	}
	if !errors.Is(err, rlock.ErrConfig) || !strings.Contains(err.Error(), remedy) {
		t.Errorf("%s, NewSession: %v", what, err)
	}
}
