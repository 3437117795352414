// Package worker is one process of the torture test. It takes locks of all kinds at random,
// writes down what it sees ([relock/torture/oracle]), and is killed, stopped and cut off.
package worker
