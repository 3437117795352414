// Package line tests how sessions wait for a plain lock in its line in Redis: who is let in and when, by a grant, a call or an
// open round, and what entries that are dead, slow or foreign cost the others.
package line
