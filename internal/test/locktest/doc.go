// Package locktest has what the tests of all kinds of lock share: sessions that end with
// their test, also behind a proxy or on a made-up clock, a matcher for the calls of one
// script, a runner that shows a script to be safe to run twice, and one for many random
// cycles after which nothing may be left.
package locktest
