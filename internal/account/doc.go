// Package account keeps the books of a claim: what may stand in Redis under its owner, from before the
// command is sent that brings it there until it is confirmed that it is not there; and from these it
// makes the commands of the claim. Of a section's holds it knows which are unlocked, and it sends nothing.
//
// Each hold has an id, but for the first one of a private owner, which gets one with the next if its kind is ByID.
// The ids of a named owner distinguish its holds from those that other sessions have under the same name. Those of a private owner
// are there since a command that is sent twice must count once; they are alike, and which of them stands
// for which hold does not matter.
//
// attempts.go remembers how the attempts of one Lock went: what its error is to say of Redis, and
// whether one of them may have run, or may yet. It sends nothing.
package account
