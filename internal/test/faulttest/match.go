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
// keeping it alive, which clients do when they please.
func isChore(cmd []string) bool {
	switch strings.ToUpper(cmd[0]) {
	case "HELLO", "CLIENT", "AUTH", "SELECT", "PING":
		return true
	}
	return false
}
