// Package relocktest helps to test code that takes locks of relock, without a Redis server.
//
// There are two ways, and most applications want both:
//
//   - [Start] gives a real session on an embedded Redis (miniredis) in the test's own process.
//     The locks are the real ones: they exclude, re-enter, expire and get lost as in
//     production. [Redis.Lose] takes a lock away from its holder, as [Redis.LoseLeadership],
//     [Redis.LosePermits] and [Redis.LoseAll] do for other kinds, and [Redis.Stop] makes Redis unreachable. [Redis.AwaitWaiters] lets a test go on when callers wait. In a
//     testing/synctest bubble leases of minutes pass in no time.
//   - [Fake] is a lock without Redis, for code that depends on the one-method interface [Doer].
//     It refuses, or loses the section, when the test says so. [FakeElection] is an election without
//     Redis, for code that depends on [Candidate].
//
// [Open] is for Examples and programs, which have no testing.TB.
//
// What these tests cannot show: the embedded Redis is a reimplementation, slower than a real
// one, and without Sentinel, Cluster and persistence. Run a few tests against a real server
// as well.
//
// Everything here needs the package miniredis, and so belongs into _test.go files.
package relocktest
