package fairlock_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"relock/fairlock"
	"relock/internal/test/locktest"
	"relock/internal/test/redistest"
	"relock/rlock"
)

// While a slot moves a release can delete the lock, and cannot make it anew for the next waiter: Redis
// refuses that in the middle of the script. Nothing is granted then, since the waiter would
// take the message for a lock that does not stand. It has the lock when the slot has moved.
func clusterGrantWhileTheSlotMoves(t *testing.T, c *redistest.Cluster) {
	ctx := within(t, 60*time.Second)
	a, b := clusterDial(t, c, silent()), clusterDial(t, c, short(new(redistest.Server)))
	name := redistest.Name(t)
	slot := redistest.Slot(name)
	from := c.Node(c.SlotOwner(t, slot))
	to := c.Addrs[0]
	if to == from.Addr {
		to = c.Addrs[1]
	}
	// A named owner's ids and a token: only with all keys there does Redis begin the script.
	first := lock(t, rlock.WithOwner(ctx, "owner"), fairlock.New(a, name, rlock.Fenced()))
	next := goQueued(t, ctx, fairlock.New(b, name, rlock.Fenced()), 1)
	channel := "relock_session:" + b.ID()
	told := locktest.Hears(t, from, channel)

	fromID, err := from.Do(t, "CLUSTER", "MYID").ToString()
	must(t, err)
	toID, err := c.Node(to).Do(t, "CLUSTER", "MYID").ToString()
	must(t, err)
	must(t, c.Node(to).Do(t, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "IMPORTING", fromID).Error())
	must(t, from.Do(t, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "MIGRATING", toID).Error())
	if err := first.hold.Unlock(); err != nil {
		t.Error(err)
	}
	must(t, from.Do(t, "PUBLISH", channel, "done").Error())
	for message := ""; message != "done"; {
		message = locktest.Get(t, told, patience, "a message to the waiter's session")
		if strings.HasPrefix(message, "grant:") {
			t.Errorf("the waiter was told %q, and the lock cannot stand", message)
		}
	}
	c.MigrateSlot(t, slot, to)
	l := granted(t, next, patience, "the waiter")
	if got, err := c.Node(to).Do(t, "HGET", name, l.hold.Owner()).ToString(); got != "1" || err != nil {
		t.Errorf("the waiter is in, and its count is %q, %v", got, err)
	}
	unlock(t, l)
	for _, key := range clusterKeys(t, c) {
		if strings.HasPrefix(key, "redisson_lock_token:") {
			must(t, c.Node(to).Do(t, "DEL", key).Error())
		}
	}
}
