-- cross.lua: fails on a node of a Cluster, which refuses keys of two slots in one script. Read-only.
-- KEYS[1], KEYS[2] two keys, not in one slot
-- Returns 1
return 1
