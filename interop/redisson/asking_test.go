package redisson

import (
	"slices"
	"strings"
	"testing"
	"time"

	"relock/internal/test/faulttest"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/rwlock"
)

// TestMatrixAsking releases a write lock between the second attempt of a Java reader, which
// Redis has refused, and the sleep of its thread: a proxy holds the answer back meanwhile.
// Redisson wakes by a '1' only the threads that sleep already. What else would end the sleep of
// the reader is the lease that it saw, 30 s, which is longer than wokenWithin.
func TestMatrixAsking(t *testing.T) {
	b := behindProxy(t)
	for _, r := range []struct {
		name  string
		write func(t *testing.T, e *env, name string) (release func())
	}{
		{"PrivateOwner", privateWriter},
		{"NamedOwner", namedWriter},
		{"Downgrade", downgradingWriter},
		{"Forced", forcedWriter},
	} {
		t.Run(r.name, func(t *testing.T) {
			name := redistest.Name(t)
			release := r.write(t, b.env, name)
			asleep, asking := b.asleep(t, name), b.asking(t, name)
			release()
			// One reader that has slept tells that Java has seen the message, and stays: its end
			// would wake the other.
			asleep.in()
			asking.answered()
			asking.in()
			asking.leave()
			asleep.leave()
		})
	}
	t.Run("SeveralReaders", b.several)
	t.Run("JavaAlone", b.javaAlone)
}

// Of several readers that are just asking one is woken, and the last reader that leaves wakes
// the next.
func (b *behind) several(t *testing.T) {
	name := redistest.Name(t)
	release := privateWriter(t, b.env, name)
	asleep, first, second := b.asleep(t, name), b.asking(t, name), b.asking(t, name)
	release()
	asleep.in()
	first.answered()
	first.in()
	second.answered()
	second.th.waits(second.done)
	first.leave()
	asleep.leave()
	second.in()
	second.leave()
}

// javaAlone shows in the log what Redisson does by itself, whose writers send no '0'.
func (b *behind) javaAlone(t *testing.T) {
	name, w := redistest.Name(t), b.java.thread(t)
	w.do("write", name, "lock", ms(5*time.Second))
	asleep, asking := b.asleep(t, name), b.asking(t, name)
	w.do("write", name, "unlock")
	asleep.in()
	answered := time.Now()
	asking.answered()
	asking.in()
	t.Logf("beside a Java writer with a lease of 5 s the reader came in %v after its attempt", time.Since(answered).Round(time.Millisecond))
	asking.leave()
	asleep.leave()
}

// behind is a Java process behind a proxy.
type behind struct {
	*env
	proxy *faulttest.Proxy
	java  *peer
}

func behindProxy(t *testing.T) *behind {
	e := single(t, dialect{})
	proxy := faulttest.New(t, e.single.Addr)
	proxied := *e
	proxied.addrs = []string{proxy.Addr()}
	// A held answer must not be taken for a lost one.
	return &behind{e, proxy, startPeer(t, &proxied, "timeout="+ms(time.Minute))}
}

// A reader is one Java thread that wants to read.
type reader struct {
	th       *thread
	name     string
	done     <-chan answer
	answered func() // lets the answer through which the proxy holds back
}

// asleep returns a reader that waits for a message.
func (b *behind) asleep(t *testing.T, name string) *reader {
	t.Helper()
	r := &reader{th: b.java.thread(t), name: name}
	r.done = r.th.start("read", name, "lock")
	r.th.waits(r.done)
	return r
}

// asking returns a reader that Redis has refused for the second time, and that does not know it.
func (b *behind) asking(t *testing.T, name string) *reader {
	t.Helper()
	r := &reader{th: b.java.thread(t), name: name}
	owner, attempts := r.th.do("read", name, "owner"), 0
	seen, release := b.proxy.HoldReply(func(cmd []string) bool {
		if strings.EqualFold(cmd[0], "EVALSHA") && slices.Contains(cmd, name) && slices.Contains(cmd, owner) {
			attempts++
		}
		return attempts == 2
	})
	t.Cleanup(release)
	r.answered = release
	r.done = r.th.start("read", name, "lock")
	locktest.Get(t, seen, answerTimeout, "Java's second attempt")
	stillWaits(t, r.done, "Java")
	return r
}

func (r *reader) in() {
	r.th.t.Helper()
	wokenJava(r.th.t, r.done)
}

func (r *reader) leave() {
	r.th.t.Helper()
	r.th.do("read", r.name, "unlock")
}

func privateWriter(t *testing.T, e *env, name string) (release func()) {
	w := take(t, rwlock.New(e.session(t, patient).Session, name).Lock)
	return func() { locktest.Must(t, w.h.Unlock()) }
}

func namedWriter(t *testing.T, e *env, name string) (release func()) {
	m := rwlock.New(e.session(t, patient).Session, name)
	_, h, err := m.Lock(rlock.WithOwner(t.Context(), "request:"+name))
	locktest.Must(t, err)
	return func() { locktest.Must(t, h.Unlock()) }
}

func downgradingWriter(t *testing.T, e *env, name string) (release func()) {
	m := rwlock.New(e.session(t, patient).Session, name)
	w := take(t, m.Lock)
	_, _, err := m.RLock(w.section)
	locktest.Must(t, err)
	return func() { locktest.Must(t, w.h.Unlock()) }
}

func forcedWriter(t *testing.T, e *env, name string) (release func()) {
	take(t, rwlock.New(e.session(t, patient).Session, name).Lock)
	return func() {
		ended, err := rwlock.New(e.session(t, patient).Session, name).ForceUnlock(t.Context())
		locktest.Must(t, err)
		if !ended {
			t.Fatal("ForceUnlock has found nobody")
		}
	}
}
