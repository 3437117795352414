// Package redis is the Redis of a session as a whole, and sends what must come to an end although its caller has gone. It
// knows scripts, and not what they are for.
//
// deployment.go is the Redis that a session is tied to: the ways to it, how they begin, and how
// they end. It knows no locks.
//
// probe.go finds out, when a session begins, whether locks can work on a server, and says
// what to do about one where they never can.
//
// record.go has the key that says in Redis who a session is, for operators, for as long as
// the session lives.
//
// replicas.go has replicas acknowledge what Redis has granted, where Config.Replicas is set,
// and an end that Hold.Extend has moved. An acquisition asks them when it has its grant: over a
// connection that WAIT may block, it sends
//
//	Extend  which finds that the hold is there, and changes nothing; behind a Hold.Extend it
//	        moves the end as that did, should a failover have lost it, but only away
//	touch   which writes the lock as it is, so that WAIT has a write to wait for
//	WAIT
//
// A replica that has the write has all that came before it on the same server. That it is the
// server which has granted the lock, and not one that was promoted since without it, is what
// Extend tells: a grant is looked for by its private owner, its permits or the id of the hold,
// none of which any other grant has. Neither of the two does harm when it comes late, so there
// is no need for an order between this connection and the others.
//
// What is not acknowledged has an unknown outcome for the rest of the machine: it is asked for
// again or taken back.
//
// resend.go sends a script until Redis answers it. It is for scripts that may run twice: a
// command without an answer may have run, may still run, or not.
//
// cleanup.go sends in the background what no caller waits for: releases of what may stand in
// Redis, each until Redis answers, or until what it ends is over by itself.
//
// On one connection a release runs behind what it releases. With a direct connection beside it,
// it waits for that (see script.Direct). After a reconnection it runs behind too: the server
// reads what was left in the old connection no later than the greeting of the new one. Only a
// proxy or a healing network can deliver the older command later; then the lock ends one lease
// later, by itself.
package redis
