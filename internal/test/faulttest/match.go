package faulttest

import (
	"slices"
	"strings"
)

// Is returns a matcher for the commands with the given name, in any case.
func Is(name string) func(cmd []string) bool {
	return func(cmd []string) bool { return strings.EqualFold(cmd[0], name) }
}

// HasArg returns a matcher for the commands of which one argument is s.
func HasArg(s string) func(cmd []string) bool {
	return func(cmd []string) bool { return slices.Contains(cmd[1:], s) }
}

// isChore reports whether the command belongs to setting up a connection or to
// keeping it alive, which clients do when they please. The empty message is how a session
// finds out whether a connection leads to the server where it listens.
func isChore(cmd []string) bool {
	switch strings.ToUpper(cmd[0]) {
	case "HELLO", "CLIENT", "AUTH", "SELECT", "PING":
		return true
	case "PUBLISH":
		return len(cmd) == 3 && cmd[2] == ""
	}
	return false
}
