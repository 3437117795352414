// Package redistest gives each test a fresh Redis of its own: miniredis in
// process, a real redis-server, a three-node cluster, or a master with a
// replica and three sentinels. Everything listens on 127.0.0.1, and is stopped
// when its test ends. Only a plain redis-server goes from test to test of a package, one at a
// time, if it can be made as it was when it was new; see [Real].
//
// The real servers need the program redis-server on PATH, or another one
// (valkey-server, say) whose path stands in RELOCK_REDIS_SERVER. Without it the
// tests that want a real server are skipped with a message; they fail instead
// when RELOCK_REQUIRE_REDIS=1, so that CI cannot pass by skipping. A server that is too old for
// this module, for the test that it is refused, is named by RELOCK_OLD_REDIS_SERVER.
package redistest
