// Package history has models of locks and counters, by which porcupine looks for an order of operations that
// the sequential object allows (linearizability). Its tests run small histories while the network fails;
// package check has the model judge what whole rounds have recorded.
//
// An operation whose outcome is unknown may have taken effect at any time after its call, or
// never. One that failed may have taken permits that were given back in the background.
package history
