-- The first names of each list, at one moment: between two looks an order could step from one list into another unseen.
local from, limit = ARGV[1], ARGV[2]
local pages = {}
for n, list in ipairs(KEYS) do
  pages[n] = redis.call('ZRANGEBYLEX', list, from, '+', 'LIMIT', 0, limit)
end
return pages
