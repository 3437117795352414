-- mark.lua: a writer that waits for readers keeps out later ones, by a mark in the line.
-- KEYS[3] the line, see line.lua: "m" -> MARKED and until when the mark is live, in ms
local MARKED = 8.4e15

-- marked_until returns until when, of a score that ZSCORE gave; nil if there is none.
local function marked_until(score) return score and tonumber(score) - MARKED or nil end
