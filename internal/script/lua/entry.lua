-- An entry of a line is who waits there, and what for. It is 20 letters, and the owner:
--   1: g, the lock may be given to it; z, too, but its session is a slow taker, see dozes; a, its session is
--     called, and asks; n, so too, and the owner is named. Of a fair lock, which leaves no round to others
--     and passes no slow taker by: f, given, and other callers may join it; h, given; d, given although its
--     session hears nothing; e, called; i, so too, and named. Of permits: P, given; Q, too, of a slow taker; C, called.
--      Of writers: V, given; U, too, of a slow taker; W, called; N, so too, and named
--   2-4: how many fencing tokens it wants, of a fair entry 999 for as many as callers wait; or how many permits; of a,
--     n, writers and readers for how many ms the lock is left to it, once it was called; of e and i 1: its session hears
--     nothing, and comes within the time of 5-8. C: 2-6 and 7-8, to base 36
--   5-8: for how many ms the lock is given  9-15: for how many ms its session is taken for alive after each sign of
--     life  16-20: the length of the session, which comes next: as the beginning of a private owner; or in
--     front of a named one, with the id of its hold, 32 letters
local function is_fair(entry) return string.find(entry, '^[defhi]') ~= nil end

-- is_deaf says whether the session of an entry is known to hear nothing: that nobody listens for it means nothing.
local function is_deaf(entry) return string.find(entry, '^d') or string.find(entry, '^[ei]001') end

local function is_entry(member) return member and string.find(member, '^[gzandefhiPQCVUWN]') ~= nil end

-- number reads some digits; not every Lua takes leading zeros for nothing by itself.
local function number(entry, from, to) return tonumber(string.sub(entry, from, to), 10) end

local function session_of(entry) return string.sub(entry, 21, 20 + number(entry, 16, 20)) end

-- marks returns the members of the line that speak of an entry besides; c may speak of any.
local function marks(entry, session)
  session = session or session_of(entry)
  if is_fair(entry) then return '#' .. entry, 'w' .. entry end
  if string.find(entry, '^[PQC]') then return 'w' .. session, 'p' .. session, 'k' .. entry end
  return 'w' .. session, 'p' .. session
end
