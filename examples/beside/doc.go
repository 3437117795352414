// Package beside has recipes that need other libraries: a table that refuses stale writers, locks
// beside a go-redis client, and the migration from redsync, redislock and rueidislock. They are
// explained in docs/recipes.md and docs/migrating.md.
package beside
