package explore

// What is broken on purpose, by what it is part of.

// plainMutants are those of what all mutexes have in common.
func plainMutants() []*Mutant {
	plain, fenced := []string{"plain-2"}, []string{"plain-2-fenced"}
	return []*Mutant{
		{Name: "an acquisition that is sent twice counts twice", Quick: true, setups: plain,
			old: "local counted = held > 0 and (not id or redis.call('SISMEMBER', ids, id) == 1)", new: "local counted = false"},
		{Name: "an acquisition takes what is held", Quick: true, setups: plain, old: "if there == 0 then\n    redis.call('HSET'", new: "if true then\n    redis.call('HSET'"},
		{Name: "an acquisition sets no end", setups: fenced, old: "redis.call('PEXPIRE', KEYS[1], ttl)\nend\nif id", new: "end\nif id"},
		{Name: "an acquisition passes those who wait", setups: plain, old: "there = redis.call('EXISTS', KEYS[1], KEYS[2] or KEYS[1])", new: "there = redis.call('EXISTS', KEYS[1])"},
		{Name: "an entry that looks moves to the end", setups: []string{"plain-3"}, old: "'LT', int(position), entry, alive, 's' .. session)", new: "int(us), entry, alive, 's' .. session)"},
		{Name: "a look is no sign of life", setups: plain, old: "local alive = int(ALIVE - now - life)", new: "local alive = int(ALIVE - now - 1)"},
		{Name: "a grant takes no lock", Quick: true, setups: plain, old: "local written = redis.pcall('HSET', KEYS[1], owner, '1')", new: "local written = 1"},
		{Name: "a grant is told to nobody", Quick: true, setups: plain, old: "redis.pcall('PUBLISH', prefix .. session_of(entry), 'granted:'", new: "redis.pcall('PUBLISH', 'nobody', 'granted:'"},
		{Name: "a grant is for less than it says", setups: plain, old: "redis.call('PEXPIRE', KEYS[1], number(entry, 5, 8))", new: "redis.call('PEXPIRE', KEYS[1], 100)"},
		{Name: "a grant leaves the entry in the line", setups: plain, old: "  else\n    redis.call('DEL', LINE)\n  end\nend", new: "  end\nend"},
		{Name: "a grant leaves the one that leaves inside", setups: plain, old: "if leaving then redis.call('HDEL', KEYS[1], leaving) end\n  return entry", new: "return entry"},
		{Name: "a grant gives two the lock", setups: []string{"plain-3"}, old: "if given then\n      take_off", new: "if given then\n      if is_entry(second) then give(second, at, now, scores) end\n      take_off"},
		{Name: "a grant gives no new token", setups: fenced, old: "token = redis.pcall('INCRBY', at.token, n)", new: "token = redis.pcall('GET', at.token)"},
		{Name: "a release lets nobody in", Quick: true, setups: plain, old: "if heads and is_entry(heads[1]) then\n  if string.sub(heads[1], 21) == ARGV[1]", new: "if false then\n  if string.sub(heads[1], 21) == ARGV[1]"},
		{Name: "a release ends what others hold", setups: plain, old: "ended = redis.pcall('HDEL', KEYS[1], ARGV[1])", new: "ended = redis.pcall('DEL', KEYS[1])"},
		{Name: "a release ends nothing", setups: plain, old: "ended = redis.pcall('HDEL', KEYS[1], ARGV[1])", new: "ended = 1"},
		{Name: "one that leaves stays in the line", setups: plain, old: "take_off(entry, booking or is_entry(heads[2]))", new: ""},
		{Name: "a renewal renews nothing", setups: plain, old: "redis.call('PTTL', key) < lease then redis.call('PEXPIRE', key, lease) end", new: "false then return end"},
		{Name: "a renewal takes any owner for the right one", setups: plain, old: "redis.pcall('HEXISTS', key, owner)", new: "redis.pcall('EXISTS', key)"},
	}
}

// fairMutants are those of fair locks.
func fairMutants() []*Mutant {
	return []*Mutant{
		{Name: "fair: a look keeps nothing", Quick: true, setups: []string{"fair-2"}, old: "enter(entry, position, us, now, false, nil, looks) -- (or", new: "-- (or"},
		{Name: "fair: a look lets nobody in", setups: []string{"fair-2"}, old: "if held == 0 and is_entry(heads[1]) then", new: "if false then"},
		{Name: "fair: a newcomer comes in first", setups: []string{"fair-3"}, old: "before > 0 and before or math.max(us, (tonumber(tail[2]) or 0) + 1)", new: "1"},
	}
}

// permitMutants are those of a semaphore.
func permitMutants() []*Mutant {
	return []*Mutant{
		{Name: "permits: a release serves nobody", setups: []string{"permits-2"}, old: "value = serve(value, math.huge, at, us, now, nil, was, known)", new: ""},
		{Name: "permits: a release counts what is not there", setups: []string{"permits-2"}, old: "given = given + removed end", new: "given = given + 1 end"},
		{Name: "permits: a grant takes none", Quick: true, setups: []string{"permits-2"}, old: "local free = redis.pcall('DECRBY', KEYS[1], int(n))", new: "local free = 1"},
		{Name: "permits: one that is sent twice takes twice", setups: []string{"permits-3"}, old: "redis.call('INCRBY', KEYS[1], n - added)", new: ""},
		{Name: "permits: what has expired does not come back", setups: []string{"permits-2"}, old: "value = redis.call('INCRBY', KEYS[1], int(back))", new: "value = tonumber(value)"},
		{Name: "permits: a renewal renews nothing", setups: []string{"permits-2"}, old: "redis.call('ZADD', taken, how, int(expiry), ARGV[i])", new: ""},
		{Name: "permits: smaller requests pass at once", setups: []string{"permits-sizes"}, old: "while past >= keeps do", new: "do return 0 end\n  while past >= keeps do"},
	}
}

// rwMutants are those of a read-write lock.
func rwMutants() []*Mutant {
	return []*Mutant{
		{Name: "rw: a reader comes in beside a writer", Quick: true, setups: []string{"rw-2"}, old: "mode ~= 'read' and {0, redis.call('PTTL', KEYS[1]), 0, 0, inside()}", new: "false"},
		{Name: "rw: a writer comes in beside readers", setups: []string{"rw-2"}, old: "local taken = redis.call('HLEN', KEYS[1]) > (mode and 1 or 0)", new: "local taken = mode == 'write'"},
		{Name: "rw: a waiting writer keeps nobody out", setups: []string{"rw-3-readers"}, old: "if mark and marked_until(mark) > now", new: "if false"},
		{Name: "rw: a writer that leaves opens no gate", setups: []string{"rw-3-turns"}, old: "local readers = waits and open_gate(READ, at.prefix, at.counts, now) or 0", new: "local readers = 0"},
		{Name: "rw: a writer that comes back passes readers by", setups: []string{"rw-2-turns"}, old: " or heads[1] and expects(now)", new: ""},
		{Name: "rw: the last reader lets no writer in", Quick: true, setups: []string{"rw-2"}, old: "next, more, given = let_writer_in(heads, booking, at, now, 0)", new: ""},
		{Name: "rw: a reader's release leaves it inside", setups: []string{"rw-2"}, old: "if held == 0 then\n  redis.call('HDEL', KEYS[1], ARGV[1])", new: "if held == 0 then"},
		{Name: "rw: a reader's renewal renews nothing", setups: []string{"rw-2"}, old: "redis.call('PEXPIRE', lock, ttl) -- first", new: "do return 1 end -- first"},
	}
}

// javaMutants are those of what Redisson's clients need.
func javaMutants() []*Mutant {
	return []*Mutant{
		{Name: "java: a release that leaves the lock free tells nobody", Quick: true, setups: []string{"plain-java"}, old: "local receivers = redis.call(ARGV[3], ARGV[2], '0')\n    if", new: "local receivers = 0\n    if"},
		{Name: "java: a reader of ours has no timeout key", setups: []string{"rw-java-reader"}, old: "call('SET', KEYS[4], '1', 'PX', left)", new: "call('SET', KEYS[4], '1', 'PX', 1)"},
		{Name: "java: the last reader takes no notice of Redisson's", setups: []string{"rw-java-reader"}, old: "elseif ours == 0 and here > 0 and held == 0 and not waits then", new: "elseif ours == 0 and here > 0 and held == 0 and not waits then here = 0"},
		{Name: "java: a writer that leaves tells nobody", Quick: true, setups: []string{"rw-java-2"}, old: "local receivers = redis.call(ARGV[3], ARGV[2], '1')\n", new: "local receivers = 0\n"},
		{Name: "java: permits that come back are told to nobody", Quick: true, setups: []string{"permits-java"}, old: "local receivers = value > 0 and redis.call(ARGV[2], ARGV[1], value)", new: "local receivers = 0"},
		{Name: "java: the first of the line does not listen", Quick: true, setups: []string{"plain-java"}, flaw: neverListens},
		{Name: "java: the watchdog renews nothing", Quick: true, setups: []string{"plain-watchdog"}, old: "redis.call('pexpire', KEYS[1], ARGV[1])\nreturn 1", new: "return 1"},
	}
}

// holdMutants are those of nested holds, and of owners with names.
func holdMutants() []*Mutant {
	return []*Mutant{
		{Name: "nested: a hold that is asked for twice counts twice", Quick: true, setups: []string{"plain-2-nested"}, old: "local counted = held > 0 and (not id or redis.call('SISMEMBER', ids, id) == 1)", new: "local counted = held > 0 and not id"},
		{Name: "nested: a hold that comes late takes the lock", setups: []string{"plain-2-nested"}, old: "if held <= 0 and before ~= '0' then return {-1, 0, 0, 0} end", new: ""},
		{Name: "nested: the release of a hold ends all", Quick: true, setups: []string{"plain-2-nested"}, old: "if held <= ended then", new: "if true then"},
		{Name: "nested: the ids of the holds are not renewed", setups: []string{"plain-2-nested"}, old: "local there = owner ~= '' and", new: "if owner == '' then return alive end\n  local there = owner ~= '' and"},
		{Name: "named: a hold that is asked for twice counts twice", Quick: true, setups: []string{"named-2"}, old: "local counted = held > 0 and (not id or redis.call('SISMEMBER', ids, id) == 1)", new: "local counted = held > 0 and not id"},
		{Name: "named: the release of one hold ends all", Quick: true, setups: []string{"named-2"}, old: "if held <= ended then", new: "if true then"},
		{Name: "named: the lock is given to one who is to ask", setups: []string{"named-3"}, old: "if not string.find(entry, '^[gzfhd]')", new: "if not string.find(entry, '^[gzfhdn]')"},
		{Name: "named: one who is called hears nothing", setups: []string{"named-3"}, old: "local told = redis.pcall('PUBLISH', prefix .. session_of(entry), 'called:'", new: "local told = redis.pcall('PUBLISH', 'nobody', 'called:'"},
	}
}

// counterMutants are those of a counter.
func counterMutants() []*Mutant {
	return []*Mutant{
		{Name: "counter: a request that is sent twice takes twice", Quick: true, setups: []string{"counter-2"}, old: "if number ~= ARGV[2] then outcome = nil end", new: "outcome = nil"},
		{Name: "counter: what was taken for one that waits no more stays taken", Quick: true, setups: []string{"counter-2"}, old: "value = redis.pcall('DECRBY', KEYS[1], '-' .. outcome)", new: "value = tonumber(value)"},
		{Name: "counter: what is added is told to nobody", Quick: true, setups: []string{"counter-2"}, old: "let_in(now, math.huge, {channel", new: "local _ = ({channel"},
		{Name: "counter: a newcomer passes those who wait", setups: []string{"counter-3"}, old: "if entry and (free < n or heads[1]) then\n  local us", new: "if entry and free < n then\n  local us"},
		{Name: "counter: one that comes late takes all the same", setups: []string{"counter-2"}, old: "redis.call('HSET', KEYS[2], ARGV[1], ARGV[2] .. ':undone')", new: ""},
	}
}

// keepMutants are those of locks that a session may keep.
func keepMutants() []*Mutant {
	return []*Mutant{
		{Name: "keep: nobody is asked for what may be kept", Quick: true, setups: []string{"keep-2"}, old: "(prefix or 'relock_session:') .. session, 'wanted:'", new: "'nobody', 'wanted:'"},
		{Name: "keep: one that is asked keeps the lock", Quick: true, setups: []string{"keep-2"}, flaw: ignoresWanted},
		{Name: "keep: one that is asked while it is inside keeps the lock then", Quick: true, setups: []string{"keep-2"}, flaw: forgetsWanted},
		{Name: "keep: a section is opened on a lock that is not trusted any more", setups: []string{"keep-2"}, flaw: reusesLate},
	}
}

// modelMutants are those of the model: what a session must not do.
func modelMutants() []*Mutant {
	plain := []string{"plain-2"}
	return []*Mutant{
		{Name: "the model counts trust from the reply", Quick: true, setups: plain, flaw: trustsFromReply},
		{Name: "the model trusts without a margin", setups: plain, flaw: noMargin},
		{Name: "the model trusts a grant for a full lease", setups: plain, flaw: trustsFullLease},
		{Name: "the model forgets to renew", setups: plain, flaw: forgetsRenewal},
		{Name: "the model ignores that its hold is gone", setups: plain, flaw: ignoresLoss},
		{Name: "the model forgets a message that comes before the answer", setups: plain, flaw: forgetsTold},
		{Name: "the model trusts a message that is older than a refusal", setups: plain, flaw: trustsTold},
		{Name: "the model never looks", setups: plain, flaw: neverLooks},
		{Name: "the model leaves its entry behind", setups: plain, flaw: leavesEntry},
		{Name: "the model's section goes on behind its release", setups: plain, flaw: unlocksLate},
	}
}
