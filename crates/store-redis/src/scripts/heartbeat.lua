-- Writes the status of a node, removes statuses that were not renewed for a long time, and returns the time.
local seen, cards = unpack(KEYS)
local node, card, life = ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', seen, string.format('%.0f', now), node)
redis.call('HSET', cards, node, card)
local stale = redis.call('ZRANGEBYSCORE', seen, '-inf', string.format('%.0f', now - life), 'LIMIT', 0, 100)
for _, gone in ipairs(stale) do
  redis.call('ZREM', seen, gone)
  redis.call('HDEL', cards, gone)
end
redis.call('PEXPIRE', seen, life)
redis.call('PEXPIRE', cards, life)
return string.format('%.0f', now)
