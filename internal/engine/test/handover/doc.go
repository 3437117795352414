// Package handover tests how a lock passes from goroutine to goroutine of one session in memory: the claim stays, and its next
// section begins.
package handover
