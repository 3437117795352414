package locktest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"relock/internal/test/redistest"
	"relock/rlock"
)

// Redisson is a Java process that takes locks by the scripts of the real one, which stand in
// testdata/redisson, and waits as it does: for a message, and for the end of what it was told. Safe for
// concurrent use.
type Redisson struct {
	t       testing.TB
	client  rueidis.Client
	folder  string
	channel string
	threads atomic.Int64

	mu      sync.Mutex
	scripts map[string]*rueidis.Lua
	waiting map[chan struct{}]bool
}

// NewRedisson starts one that listens to the channel of the lock that it contends for. folder is the path
// to testdata/redisson.
func NewRedisson(t testing.TB, s *redistest.Server, folder, channel string) *Redisson {
	t.Helper()
	r := &Redisson{t: t, client: s.Client(t), folder: folder, channel: channel,
		scripts: map[string]*rueidis.Lua{}, waiting: map[chan struct{}]bool{}}
	heard, done, stop := Hears(t, s, channel), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-heard:
				r.wake()
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
	return r
}

// Thread returns an owner that no other thread has.
func (r *Redisson) Thread() string {
	return fmt.Sprintf("0b6de3d7-9d3b-4f19-a3a4-2a2f9a1d7c11:%d", r.threads.Add(1))
}

// Run runs a script of Redisson's; the reply is "" for nil.
func (r *Redisson) Run(script string, keys []string, args ...string) string {
	r.mu.Lock()
	lua := r.scripts[script]
	if lua == nil {
		src, err := os.ReadFile(filepath.Join(r.folder, script+".lua"))
		if err != nil {
			r.t.Error(err)
		}
		lua = rueidis.NewLuaScript(string(src))
		r.scripts[script] = lua
	}
	r.mu.Unlock()
	reply, err := lua.Exec(context.Background(), r.client, keys, args).ToAny()
	switch {
	case rueidis.IsRedisNil(err):
		return ""
	case err != nil:
		r.t.Errorf("%s: %v", script, err)
	}
	return fmt.Sprint(reply)
}

// Unlock runs a script that ends a hold, with a latch of its own among the keys, and deletes that.
func (r *Redisson) Unlock(script string, keys []string, args ...string) string {
	latch := keys[0] + ":unlock:" + strconv.FormatInt(r.threads.Add(1), 10)
	reply := r.Run(script, append(keys, latch), append(args, "16000")...)
	if err := r.client.Do(context.Background(), r.client.B().Del().Key(latch).Build()).Error(); err != nil {
		r.t.Error(err)
	}
	return reply
}

// Do sends a command.
func (r *Redisson) Do(command string, args ...string) {
	if err := r.client.Do(context.Background(), r.client.B().Arbitrary(command).Args(args...).Build()).Error(); err != nil {
		r.t.Errorf("%s %q: %v", command, args, err)
	}
}

// silence is for how long a waiter may hear of nothing: nobody holds anything for so long.
const silence = 30 * time.Second

// Woken makes the attempt by take, of ours. It fails the test if no message wakes it, where its session
// does not look by itself.
func (a *Attempt) Woken(take func(*Attempt) (*Taken, error)) (*Taken, error) {
	own := *a
	ctx, cancel := context.WithCancel(a.Ctx)
	own.Ctx = ctx
	late := time.AfterFunc(silence, func() {
		a.T.Errorf("%s: a waiter was not woken for %v", a.Name, silence)
		cancel()
	})
	taken, err := take(&own)
	late.Stop()
	if err != nil {
		cancel()
		return nil, err
	}
	unlock := taken.Unlock
	taken.Unlock = func() error { defer cancel(); return unlock() }
	return taken, nil
}

// Take makes an attempt, which says how long to wait at most if it was refused, below 0 if that is not
// known, until it succeeds or a gives up. A message must come in that time: the one who ends a hold sends it.
func (r *Redisson) Take(a *Attempt, attempt func() (ok bool, wait time.Duration)) error {
	wake := make(chan struct{}, 1)
	r.listen(wake, true)
	defer r.listen(wake, false)
	for {
		ok, wait := attempt()
		switch {
		case ok:
			return nil
		case a.Try || len(a.Opts) > 0 && !a.Leased:
			return rlock.ErrNotAcquired
		case wait == -2*time.Millisecond: // PTTL of no key: in miniredis one may expire within a script
			continue
		case wait < 0 || wait > silence:
			wait = silence
		}
		timer := time.NewTimer(wait)
		select {
		case <-wake:
		case <-timer.C:
			if wait == silence {
				r.t.Errorf("%s: Java was not woken for %v", a.Name, silence)
				return rlock.ErrNotAcquired
			}
		case <-a.Ctx.Done():
			timer.Stop()
			return a.Ctx.Err()
		}
		timer.Stop()
	}
}

func (r *Redisson) listen(wake chan struct{}, on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if on {
		r.waiting[wake] = true
	} else {
		delete(r.waiting, wake)
	}
}

func (r *Redisson) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for w := range r.waiting {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}
