// Package report is what a session tells its user unasked, and where code of the user's runs that no call waits for.
//
// tracing.go calls the hooks of a locktrace.Trace, and sees to it that each start has exactly
// one end. It knows neither Redis nor locks, only their errors, and calls hooks under no mutex of its own.
//
// outage.go tells the Logger of the times in which Redis does not serve: Locks that wait, or
// renewals. It tells when one begins and when it ends, however many locks there are and however often
// they ask. What it repeats comes at most every [OutagePause].
//
// notifier.go runs code of the caller's where it can do no harm: the Logger, and the hooks that
// concern no call.
package report
