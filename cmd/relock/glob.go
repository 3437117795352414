package main

import "strings"

// A glob is a pattern as SCAN takes it: * ? [a-z] [^a] and \ before what stands for itself. It goes by bytes, as Redis
// does, so that a name and a pattern may have letters of several bytes, or none that are letters.
type glob string

// matches reports whether the whole name is one that the pattern describes.
func (g glob) matches(name string) bool {
	var behind glob // the last *,
	var from string // and where what stands behind that was tried last
	again := false
	for g != "" || name != "" {
		if g != "" && g[0] == '*' {
			g = g[1:]
			behind, from, again = g, name, true
			continue
		}
		if g != "" && name != "" {
			if rest, ok := g.one(name[0]); ok {
				g, name = rest, name[1:]
				continue
			}
		}
		if !again || from == "" {
			return false
		}
		from = from[1:]
		g, name = behind, from
	}
	return true
}

// one reports whether the first part of a pattern, which is no *, stands for the byte, and returns the rest.
func (g glob) one(c byte) (rest glob, ok bool) {
	switch {
	case g[0] == '?':
		return g[1:], true
	case g[0] == '[':
		return g[1:].set(c)
	case g[0] == '\\' && len(g) > 1:
		g = g[1:]
	}
	return g[1:], g[0] == c
}

// set does so for a set, of which the [ is gone already. One without an end goes to the end of the pattern.
func (g glob) set(c byte) (rest glob, ok bool) {
	not := strings.HasPrefix(string(g), "^")
	if not {
		g = g[1:]
	}
	for g != "" && g[0] != ']' {
		switch {
		case g[0] == '\\' && len(g) > 1:
			g = g[1:]
			ok = ok || c == g[0]
		case len(g) > 2 && g[1] == '-': // a range may be turned round
			ok = ok || min(g[0], g[2]) <= c && c <= max(g[0], g[2])
			g = g[2:]
		default:
			ok = ok || c == g[0]
		}
		g = g[1:]
	}
	return glob(strings.TrimPrefix(string(g), "]")), ok != not
}
