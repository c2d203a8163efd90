-- Adds to the books of one day what changed no order.
local desk, days, books = unpack(KEYS)
local day, keep_books_until, grace = ARGV[1], ARGV[2], ARGV[3]
local FIRST_TALLY = 4

local seal = redis.call('HGET', desk, 'seal')
if seal then
  return { 'sealed', seal }
end
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000

redis.call('ZADD', days, day, day)
for n = FIRST_TALLY, #ARGV, 2 do
  local count = redis.pcall('HINCRBY', books, ARGV[n], ARGV[n + 1])
  if type(count) == 'table' then
    redis.pcall('HSET', books, ARGV[n], '9223372036854775807')
  end
end
local expires = math.max(tonumber(keep_books_until), now_ms + tonumber(grace))
redis.pcall('PEXPIREAT', books, string.format('%.0f', expires))
return { 'done' }
