// Package claim tests the life of a claim and of the sections on it: nested holds, leases, late answers, what Unlock, UnlockAsync
// and Abandon leave, and what all of this costs.
package claim
