// Package redisson holds nothing but tests: the locks of this library against those of the
// real Redisson, in a Java process of its own (peer/), on a real Redis, alone and as a
// Cluster. What they found is written down in docs/redisson.md.
//
// They need redis-server, a JDK (17 or later) and Maven, which downloads Redisson once.
// Without these they are skipped, or fail when RELOCK_REQUIRE_JAVA=1. "make interop" runs
// them. RELOCK_REDISSON names a version of Redisson other than that of peer/pom.xml.
package redisson
