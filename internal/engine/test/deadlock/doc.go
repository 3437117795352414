// Package deadlock tests how callers that wait for each other, in one session or in several, are found and told.
package deadlock
