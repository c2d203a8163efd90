-- The first keys of each list, read in one step: between two reads, an order could move from one list to another.
local from, limit = ARGV[1], ARGV[2]
local pages = {}
for n, list in ipairs(KEYS) do
  pages[n] = redis.call('ZRANGEBYLEX', list, from, '+', 'LIMIT', 0, limit)
end
return pages
