// Package otel makes a [rlock.Trace] that records metrics and spans with OpenTelemetry.
//
//	trace, err := otel.New()
//	session, err := rlock.Dial(ctx, option, rlock.Config{Trace: trace})
//
// One Trace serves all sessions of a process; their numbers add up. Gauges are 0 again when all
// sessions are closed.
//
// # Metrics
//
//	relock.acquire.duration         histogram, s   from the call of Lock to its return, with or without the lock
//	relock.acquires                 counter        calls that wanted a lock
//	relock.waiters                  up-down        callers that wait for a release now
//	relock.attempts                 counter        acquire scripts that Redis answered, or did not
//	relock.hold.duration            histogram, s   from the beginning of a hold to its end
//	relock.holds                    up-down        holds that stand now
//	relock.hold.lost                counter        holds that were lost
//	relock.release.duration         histogram, s   round trip of an Unlock that had to ask Redis
//	relock.renewal.duration         histogram, s   round trip of a batch of renewals
//	relock.renewals                 counter        claims whose renewal was answered, or was not
//	relock.subscription.connections up-down        connections that listen now
//	relock.subscription.events      counter        changes of state of subscriptions
//	relock.line.events              counter        messages to sessions that stand in the line of a lock
//	relock.keep.locks               up-down        locks that are kept now, without a hold: see rlock.Keep
//	relock.keep.events              counter        changes of locks that a session keeps, or may keep
//
// # Attributes
//
//	relock.lock.kind          mutex, fair, read, write, semaphore, counter, latch: all but renewals and subscriptions
//	relock.lock.name          only with WithLockName
//	relock.nested             whether the owner had the lock already: acquires, holds
//	relock.acquire.outcome    acquired, refused, timeout, cancelled, unavailable, closed, deadlock, failed: acquires
//	relock.acquire.grant      redis, memory, shared, kept, line: acquires that got the lock
//	relock.attempt.result     granted, refused, error: attempts
//	relock.hold.end           released, lost, closed, expired, abandoned: relock.hold.duration
//	relock.result             ok, error: releases and renewals
//	relock.subscription.state connected, lost, closed, refused, polling: relock.subscription.events
//	relock.line.event         granted, called, open: relock.line.events
//	relock.keep.event         begins, reused, wanted, given back, over: relock.keep.events
//
// # Spans
//
// "relock acquire" covers a call that wants a lock, with the event "waiting" if it waits.
// "relock release" covers the round trip of an Unlock. Both are children of the span in the
// context that was given to Lock. Errors of Redis set the status; a lock that another owner
// holds is no error.
package otel
