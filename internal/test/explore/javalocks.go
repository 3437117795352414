package explore

import (
	"fmt"
	"strconv"
	"strings"

	"relock/internal/idgen"
	"relock/internal/mutex"
	"relock/internal/script"
	"relock/internal/test/explore/memredis"
)

// What the locks of Redisson send, by its scripts.

// nilOrTTL is how Redisson's locks answer: nil, or for how many ms another holds it.
func nilOrTTL(r memredis.Reply) (ok bool, wait int64) { return r.Kind == memredis.Nil, r.Int }

// latchLife is for how long the latch of an unlock stands, in ms; it is deleted before.
const latchLife = "16000"

// A javaMutex is RLock.
type javaMutex struct{ *mutex.Primitive }

var javaLocks, javaUnlocks = load(javaScripts + "lock.lua"), load(javaScripts + "unlock.lua")

func (j javaMutex) latch(owner string) string {
	return j.Names().Prefixed("redisson_unlock_latch") + ":" + owner
}

func (j javaMutex) lock(w *world, owner string) script.Command {
	return script.Command{Script: javaLocks, Keys: []string{"lock"}, Args: []string{strconv.FormatInt(w.set.lease, 10), owner}}
}

func (j javaMutex) unlock(w *world, owner string) script.Command {
	return script.Command{Script: javaUnlocks, Keys: []string{"lock", j.Channel(), j.latch(owner)},
		Args: []string{"0", strconv.FormatInt(w.set.lease, 10), owner, "PUBLISH", latchLife}}
}

func (j javaMutex) locked(_ *world, r memredis.Reply) (bool, int64) { return nilOrTTL(r) }

// A javaKept is RLock without a lease, which the watchdog renews.
type javaKept struct{ javaMutex }

var javaRenews = load(javaScripts + "renew.lua")

func (j javaKept) renew(w *world, owner string) script.Command {
	return script.Command{Script: javaRenews, Keys: []string{"lock"}, Args: []string{strconv.FormatInt(w.set.lease, 10), owner}}
}

// A javaSide is a side of RReadWriteLock.
type javaSide struct {
	*Sides
	reads bool
}

var (
	javaReads, javaReadEnds   = load(javaScripts + "read_lock.lua"), load(javaScripts + "read_unlock.lua")
	javaWrites, javaWriteEnds = load(javaScripts + "write_lock.lua"), load(javaScripts + "write_unlock.lua")
)

func (j javaSide) lock(w *world, owner string) script.Command {
	lease := strconv.FormatInt(w.set.lease, 10)
	if j.reads {
		return script.Command{Script: javaReads, Keys: []string{"lock", j.timeouts(owner)}, Args: []string{lease, owner, owner + ":write"}}
	}
	return script.Command{Script: javaWrites, Keys: []string{"lock"}, Args: []string{lease, owner + ":write"}}
}

func (j javaSide) unlock(w *world, owner string) script.Command {
	latch := j.Names.Prefixed("redisson_unlock_latch") + ":" + owner
	if j.reads {
		return script.Command{Script: javaReadEnds, Args: []string{"0", owner, "PUBLISH", latchLife},
			Keys: []string{"lock", j.channel(), j.timeouts(owner), strings.TrimSuffix(j.Names.Suffixed(""), ":"), latch}}
	}
	return script.Command{Script: javaWriteEnds, Keys: []string{"lock", j.channel(), latch},
		Args: []string{"1", strconv.FormatInt(w.set.lease, 10), owner + ":write", "PUBLISH", latchLife}}
}

// timeouts is what the timeout keys of an owner begin with.
func (j javaSide) timeouts(owner string) string { return strings.TrimSuffix(j.timeout(owner), ":1") }

func (j javaSide) locked(_ *world, r memredis.Reply) (bool, int64) { return nilOrTTL(r) }

// A javaPermits is RPermitExpirableSemaphore.
type javaPermits struct{ *Permits }

var javaTakes, javaGives = load(javaScripts + "permit_acquire.lua"), load(javaScripts + "permit_release.lua")

// endless is the expiry of a permit without a lease.
const endless = "922337203685477"

func (j javaPermits) lock(w *world, owner string) script.Command {
	ms := func(at int64) string { return strconv.FormatInt(at, 10) }
	return script.Command{Script: javaTakes, Keys: append(j.keys()[:2:2], j.channel()),
		Args: idgen.AppendPermits([]string{"1", ms(w.now() + w.set.lease), ms(w.now()), endless, "PUBLISH"}, owner, 1)}
}

func (j javaPermits) unlock(w *world, owner string) script.Command {
	args := append(idgen.AppendPermits(nil, owner, 1), "1", strconv.FormatInt(w.now(), 10), "PUBLISH")
	return script.Command{Script: javaGives, Keys: []string{j.Names.Key(), j.channel(), j.keys()[1]}, Args: args}
}

func (j javaPermits) locked(w *world, r memredis.Reply) (ok bool, wait int64) {
	at, waits := strings.CutPrefix(r.Text, ":")
	if !waits {
		return r.Text == "OK", -1
	}
	expiry, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		w.fail(fmt.Sprintf("Java does not understand %v", r))
	}
	return false, max(0, expiry-w.now())
}
