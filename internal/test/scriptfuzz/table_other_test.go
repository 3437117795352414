package scriptfuzz

var (
	latchKey  = named("x", latchRole)
	doneKey   = named("relock_request:{x}:r", doneRole)
	lifeKey   = named("relock_quorum_life", lifeRole)
	leaderKey = named("relock_leader:{x}", leaderRole)
)

var otherScripts = []scriptRow{
	{path: "latch/lua/await.lua", reply: numbers(6, 6), calls: []call{{keys: k(latchKey)}}},
	{path: "latch/lua/count.lua", reply: digits, calls: []call{{keys: k(latchKey)}}},
	{path: "latch/lua/count_down.lua", reply: numbers(1, 1), calls: []call{{keys: k(latchKey, doneKey), args: a(ch, publish, is("65000"))}}},
	{path: "latch/lua/try_set.lua", reply: numbers(1, 1), calls: []call{{keys: k(latchKey, doneKey), args: a(ch, publish, is("65000"), any1("3", "1"))}}},
	{path: "quorum/lua/acquire.lua", reply: withOwner, grants: lockRole, calls: []call{
		{as: (*world).bare, keys: k(lock, lifeKey), args: a(owner, lease, any1("30000", "1", "0"))},
	}},
	{path: "election/lua/publish.lua", reply: numbers(1, 1), calls: []call{
		{as: (*world).private, keys: k(lock, leaderKey), args: a(owner, any1("4", "5"), any1("1", "2", "3"), any1("v", "w", ""), ch, publish)},
	}},
	{path: "election/lua/leader.lua", reply: anything, calls: []call{{keys: k(lock, leaderKey)}}},
	{path: "multilock/lua/deployment.lua", reply: text, calls: []call{{keys: k(named("relock_deployment", textRole)), args: a(is("d"))}}},
	{path: "internal/redis/lua/probe.lua", reply: numbers(1, 1), calls: []call{{keys: k(named("relock_probe:1", probeRole)), args: a(ch, publish, is(prefix+"none"))}}},
	{path: "internal/redis/lua/cross.lua", reply: numbers(1, 1), calls: []call{{keys: k(named("a", textRole), named("b", textRole))}}},
	{path: "internal/redis/lua/touch.lua", reply: numbers(1, 1), calls: []call{{keys: k(named("x", eitherRole))}}},
	{path: "internal/redis/lua/record.lua", reply: digits, calls: []call{{keys: k(named(prefix+"S1", &role{name: "record", ends: true, helper: true, types: []string{"string"}, state: textRole.state})), args: a(is("{", "}", "180000"))}}},
}
