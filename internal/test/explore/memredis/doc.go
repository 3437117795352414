// Package memredis is a Redis in memory for the exploration of scripts: as much of it as the scripts of
// this module use. Its state is cheap to copy and can be told apart from another one: keys, values, ends
// and the clock, which stands still until it is set.
//
// It is one database of one server, on its own: no Cluster, no replicas, no ACL, no limit of memory.
// Expired keys are gone at the same moment as in Redis, when the clock says more than their end. The
// differential tests of this package compare it with a real redis-server, command by command and
// script by script.
package memredis
