// Package keep tests locks that a session keeps between two sections (rlock.Keep), and how other sessions get them.
package keep
