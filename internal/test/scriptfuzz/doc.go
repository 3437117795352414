// Package scriptfuzz runs every Lua script of this module on random states of its keys, with random
// arguments that a session might send. It has tests only.
//
// A table says of each script which keys and which arguments it takes, by kinds: the lock, the line, an
// owner, an entry. From a string of bytes, [testing.F]'s or a random one, come the form of the call, the
// arguments and what stands at the keys: nothing, a value of another type, or what some earlier life has
// left. After each run the following must hold, whatever stood there:
//
//   - The script has answered. An error is WRONGTYPE, or one that the table names for the script.
//   - An error leaves all keys as they were.
//   - Each key that must end has a TTL, unless it stood there without one before.
//   - No key has been written that the call does not name.
//   - The reply has a shape that the session can read.
//   - A lock that was granted lives for the lease at least.
package scriptfuzz
