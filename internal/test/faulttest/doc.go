// Package faulttest puts a proxy between a Redis client and its server which
// breaks things on purpose and at an exact place: it understands RESP, and so
// acts on whole commands and on whole replies. It can lose the reply to one
// certain command after the command has run, hold a command back, lose every
// pub/sub message, cut connections, or go silent; and it counts the commands. It
// listens on an address, or works in memory for a test with a made-up clock ([Of]).
//
// A fault that names a command strikes once, on the next command that matches
// and that is not yet taken by an earlier fault of the same side (request or
// reply). Matchers get the command with its arguments; they are called with the
// proxy locked, and must not call it.
//
// Commands on one connection are answered in their order, faults or not: what
// is held back holds back everything behind it on the same connection, in the
// same direction.
package faulttest
