package redisson

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
	"relock/semaphore"
)

// permitsRows: a Semaphore is Redisson's RPermitExpirableSemaphore.
var permitsRows = []row{
	{"JavaReleasesGoWaits", permitsJavaReleasesGoWaits},
	{"GoReleasesJavaWaits", permitsGoReleasesJavaWaits},
	{"SeveralAtOnce", permitsSeveralAtOnce},
	{"JavaLeaseEnds", permitsJavaLeaseEnds},
	{"GoLeaseEnds", permitsGoLeaseEnds},
	{"JavaWithoutLease", permitsJavaWithoutLease},
	{"GoIsRenewed", permitsGoIsRenewed},
	{"JavaProlongs", permitsJavaProlongs},
	{"JavaReleasesGos", permitsJavaReleasesGos},
	{"GoReleasesJavas", permitsGoReleasesJavas},
	{"JavaExtendsGos", permitsJavaExtendsGos},
	{"GoExtendsJavas", permitsGoExtendsJavas},
	{"JavaKilled", permitsJavaKilled},
	{"GoKilled", permitsGoKilled},
	{"LimitChanges", permitsLimitChanges},
	{"CountsAgree", permitsCountsAgree},
}

// permits is a Semaphore as a function that waits for n of its permits; releases of what
// it got go by gotPermits.
type gotPermits struct {
	section context.Context
	p       *semaphore.Permits
	err     error
}

func (s *side) acquires(t testing.TB, name string, m *semaphore.Semaphore, n int) <-chan gotPermits {
	t.Helper()
	c := make(chan gotPermits, 1)
	ctx := locktest.Within(t, 2*time.Minute)
	s.waits(t, name, func() {
		go func() {
			section, p, err := m.Acquire(ctx, n)
			c <- gotPermits{section, p, err}
		}()
	})
	return c
}

func wokenPermits(t testing.TB, c <-chan gotPermits) gotPermits {
	t.Helper()
	g := locktest.Get(t, c, wokenWithin, "a message wakes the Go side")
	locktest.Must(t, g.err)
	return g
}

func tryPermits(t testing.TB, m *semaphore.Semaphore, n int, opts ...rlock.LockOption) gotPermits {
	t.Helper()
	section, p, err := m.TryAcquire(t.Context(), n, opts...)
	locktest.Must(t, err)
	return gotPermits{section, p, err}
}

func noPermits(t testing.TB, m *semaphore.Semaphore, n int) {
	t.Helper()
	_, _, err := m.TryAcquire(t.Context(), n)
	locktest.Is(t, "TryAcquire", err, rlock.ErrNotAcquired)
}

func permitsJavaReleasesGoWaits(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 3)
	j.want("true", "permits", name, "set", "3")
	two := j.do("permits", name, "acquire", "2", ms(time.Minute))
	one := tryPermits(t, m, 1)
	noPermits(t, m, 1)
	waiter := s.acquires(t, name, m, 2)
	ids := strings.Split(two, ",")
	j.want("true", "permits", name, "release", ids[0])
	redistest.Eventually(t, answerTimeout, "Go has looked", func() bool { return s.attempts(name) >= 4 })
	stillWaits(t, waiter, "Go")
	j.want("true", "permits", name, "release", ids[1])
	g := wokenPermits(t, waiter)
	j.want("false", "permits", name, "release", ids[1])
	j.want("0", "permits", name, "available")
	locktest.Must(t, g.p.Release())
	locktest.Must(t, one.p.Release())
	j.want("3", "permits", name, "available")
}

func permitsGoReleasesJavaWaits(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 3)
	g, rest := tryPermits(t, m, 2), tryPermits(t, m, 1)
	j := e.java.thread(t)
	j.want("false", "permits", name, "set", "9") // the limit is Go's
	j.want("", "permits", name, "try", "1", "0", ms(time.Minute))
	var waiting []<-chan answer
	for i := range 2 {
		w := []*peer{e.java, e.other}[i].thread(t)
		waiting = append(waiting, w.start("permits", name, "acquire", "1", ms(time.Minute)))
		w.waits(waiting[i])
	}
	locktest.Must(t, g.p.Release())
	for _, w := range waiting {
		j.want("true", "permits", name, "release", wokenJava(t, w))
	}
	w := j.start("permits", name, "try", "3", ms(patience), ms(time.Minute))
	j.waits(w)
	locktest.Must(t, rest.p.Release())
	ids := wokenJava(t, w)
	noPermits(t, m, 1)
	j.want("true", "permits", name, "release", ids)
	wantCount(t, "Available", 3, m.Available)
}

// A list that Java releases is announced by its length, not by how many are free now.
func permitsSeveralAtOnce(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 5)
	one := tryPermits(t, m, 1)
	ids := j.do("permits", name, "acquire", "4", ms(time.Minute))
	waiter := s.acquires(t, name, m, 3)
	s2 := e.session(t, patient)
	s2.behind = true
	other := s2.acquires(t, name, semaphore.New(s2.Session, name, 5), 1)
	j.want("true", "permits", name, "release", ids)
	locktest.Must(t, wokenPermits(t, waiter).p.Release())
	locktest.Must(t, wokenPermits(t, other).p.Release())
	locktest.Must(t, one.p.Release())
	wantCount(t, "Available", 5, m.Available)
}

// Java gives back what Go has, by its id: the section ends, and what is left of it comes back when
// it is left.
func permitsJavaReleasesGos(t *testing.T, e *env) {
	name, j := redistest.Name(t), e.java.thread(t)
	s := e.session(t, rlock.Config{Lease: short})
	m := semaphore.New(s.Session, name, 3)
	g := tryPermits(t, m, 3)
	ids := g.p.IDs()
	j.want("true", "permits", name, "release", ids[1])
	j.want("false", "permits", name, "release", ids[1])
	j.want("1", "permits", name, "available")
	locktest.Ends(t, g.section, short, rlock.ErrLost)
	locktest.Is(t, "Release", g.p.Release(), rlock.ErrLost)
	redistest.Eventually(t, answerTimeout, "the others to come back", func() bool {
		n, err := m.Available(t.Context())
		return err == nil && n == 3
	})
	two := tryPermits(t, m, 2)
	j.want("true", "permits", name, "release", strings.Join(two.p.IDs(), ","))
	j.want("3", "permits", name, "available")
	locktest.Is(t, "Release", two.p.Release(), rlock.ErrLost)
	j.want("3", "permits", name, "total")
}

// Go gives back what Java has, by its ids; a Java waiter is woken.
func permitsGoReleasesJavas(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 3)
	j.do("permits", name, "set", "3")
	ids := strings.Split(j.do("permits", name, "acquire", "3", ms(time.Hour)), ",")
	waiter := e.other.thread(t)
	w := waiter.start("permits", name, "acquire", "2", ms(time.Hour))
	waiter.waits(w)
	locktest.Must(t, m.ReleaseByID(t.Context(), ids[0], ids[2]))
	theirs := wokenJava(t, w)
	locktest.Is(t, "again", m.ReleaseByID(t.Context(), ids[0]), rlock.ErrNotHeld)
	j.want("false", "permits", name, "release", ids[0])
	locktest.Must(t, m.ReleaseByID(t.Context(), append(strings.Split(theirs, ","), ids[1])...))
	wantCount(t, "Available", 3, m.Available)
	j.want("3", "permits", name, "total")
}

func permitsJavaKilled(t *testing.T, e *env) {
	name, s := redistest.Name(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 2)
	victim := startPeer(t, e)
	v := victim.thread(t)
	v.do("permits", name, "set", "2")
	v.do("permits", name, "acquire", "2", ms(2*short))
	victim.kill()
	ctx, cancel := context.WithTimeout(t.Context(), wokenWithin) // the poll floor is later
	defer cancel()
	_, p, err := m.Acquire(ctx, 1) // by the clock
	locktest.Must(t, err)
	locktest.Must(t, p.Release())
	wantCount(t, "Available", 2, m.Available)
}

func permitsGoKilled(t *testing.T, e *env) {
	name, j := redistest.Name(t), e.java.thread(t)
	kill := holdInChild(t, e, "permits", name)
	waiter := j.start("permits", name, "acquire", "2", ms(time.Minute))
	j.waits(waiter)
	kill()
	j.want("true", "permits", name, "release", wokenJava(t, waiter))
	j.want("2", "permits", name, "total")
}

func permitsLimitChanges(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 2)
	g := tryPermits(t, m, 2)
	waiter := j.start("permits", name, "acquire", "1", ms(time.Minute))
	j.waits(waiter)
	locktest.Must(t, m.SetLimit(t.Context(), 3))
	id := wokenJava(t, waiter)
	j.want("3", "permits", name, "total")

	mine := s.acquires(t, name, m, 1)
	j.do("permits", name, "limit", "4")
	locktest.Must(t, wokenPermits(t, mine).p.Release())

	// Fewer than are held: no permit is taken from its holder, and none is given.
	j.do("permits", name, "limit", "1")
	wantCount(t, "Available", 0, m.Available)
	locktest.Must(t, g.p.Release())
	noPermits(t, m, 1)
	j.want("0", "permits", name, "available")
	j.want("true", "permits", name, "release", id)
	j.want("1", "permits", name, "available")
	take1 := tryPermits(t, m, 1)
	locktest.Must(t, take1.p.Release())
}

func permitsCountsAgree(t *testing.T, e *env) {
	name, j, s := redistest.Name(t), e.java.thread(t), e.session(t, patient)
	m := semaphore.New(s.Session, name, 10)
	j.do("permits", name, "set", "10")
	var ids []string
	var held []gotPermits
	for n := 1; n <= 2; n++ {
		ids = append(ids, j.do("permits", name, "acquire", strconv.Itoa(n), ms(time.Minute)))
		held = append(held, tryPermits(t, m, n))
	}
	j.want("4", "permits", name, "available")
	j.want("6", "permits", name, "acquired")
	j.want("10", "permits", name, "total")
	wantCount(t, "Available", 4, m.Available)
	locktest.Must(t, held[1].p.Release())
	j.want("true", "permits", name, "release", ids[1])
	j.want("2", "permits", name, "acquired")
	wantCount(t, "Available", 8, m.Available)
}
