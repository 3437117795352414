package rwlock

import "errors"

// ErrUpgrade: Lock or TryLock by an owner that holds only the read side. It comes at once: two
// owners that waited for each other to leave the read side would deadlock. The read side stays
// held. Unlock it first; or take the write side first, whose owner may take the read side too and
// keep it after unlocking the write side.
var ErrUpgrade = errors.New("rwlock: the owner holds the read side and cannot upgrade to the write side")
