// Package topology tests locks on Clusters, Sentinels and servers with replicas, whose slots move and whose primaries change, and the
// connections by which a session follows them.
package topology
