package explore

import (
	"strconv"
	"testing"

	"relock/internal/idgen"
)

// How long ago a permit has expired makes no difference; whether it has does. Else states would never come again while the
// holder of another permit renews that: time would go on for ever.
func TestWhatHasExpiredIsNotCounted(t *testing.T) {
	set, err := setupOf("permits-2")
	if err != nil {
		t.Fatal(err)
	}
	h := newWorker(set, newSeeds()).h
	expiring := func(in int64) key {
		w := set.begin()
		w.redis.Do("ZADD", "{sem}:timeout", strconv.FormatInt(w.now()+in, 10), idgen.AppendPermits(nil, "X:1", 1)[0])
		return h.of(w)
	}
	if expiring(-2000) != expiring(-1) {
		t.Error("a permit that has expired a while ago makes another state than one that just has")
	}
	if expiring(-1) == expiring(0) || expiring(0) == expiring(1) {
		t.Error("that a permit expires makes no difference")
	}
}

// An end that no run comes to makes no difference.
func TestWhatEndsFarOffIsNotCounted(t *testing.T) {
	set, err := setupOf("counter-2")
	if err != nil {
		t.Fatal(err)
	}
	h := newWorker(set, newSeeds()).h
	ending := func(in int64) (key, int64) {
		w := set.begin()
		w.redis.Do("SET", "k", "1", "PX", strconv.FormatInt(in, 10))
		return h.of(w), w.nextTime()
	}
	far, next := ending(remembered)
	if farther, _ := ending(remembered + 1000); far != farther || next != never {
		t.Errorf("time goes on to %d for what ends far off, or its end makes a difference", next)
	}
	near, next := ending(5000)
	if nearer, _ := ending(4000); near == nearer || next == never {
		t.Error("what ends soon makes no difference")
	}
}
