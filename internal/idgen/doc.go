// Package idgen makes the random ids that stand in Redis: those of sessions,
// and of holds and requests. A private owner's id, "<session id>:<number>", is made
// in claim.go of package engine; SplitOwner and scripts take it apart at the last
// colon, and fairlock relies on the session's id in front.
// fairlock also relies on the length of Request, 32.
//
// permits.go makes the ids under which a semaphore's permits stand in Redis, and takes
// them apart for those who look at them.
//
// requests.go identifies commands that no owner stands behind, so that a copy of one can be
// told from another command: each copy counts, unless Redis remembers the request.
package idgen
