// Package fault tests what callers are told, and what is left in Redis, when the network, the server, the key under a lock or
// code of the caller fails.
package fault
