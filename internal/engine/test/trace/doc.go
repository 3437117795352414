// Package trace tests which hooks hear of what, and that each begin has one end.
package trace
