// Package history runs small histories of operations while the network fails, and has
// porcupine look for an order of them that the sequential object allows (linearizability).
//
// An operation whose outcome is unknown may have taken effect at any time after its call, or
// never. One that failed may have taken permits that were given back in the background.
package history
