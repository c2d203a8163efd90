-- The days of which there are usage, in detail or not, at one moment: between two looks a day could be closed unseen.
local from, to = ARGV[1], ARGV[2]
local found = {}
for n, set in ipairs(KEYS) do
  found[n] = redis.call('ZRANGEBYSCORE', set, from, to)
end
return found
