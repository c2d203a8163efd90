-- The days with usage, in detail or compacted, read in one step: between two reads, a day could move from one list to the other.
local from, to = ARGV[1], ARGV[2]
local found = {}
for n, set in ipairs(KEYS) do
  found[n] = redis.call('ZRANGEBYSCORE', set, from, to)
end
return found
