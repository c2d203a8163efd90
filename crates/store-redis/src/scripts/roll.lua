-- The status of all nodes, and the time, read in one step.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local since = string.format('%.0f', now - tonumber(ARGV[1]))
local seen = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. since, '+inf', 'WITHSCORES')
local roll = { string.format('%.0f', now) }
for n = 1, #seen, 2 do
  roll[#roll + 1] = { seen[n + 1], redis.call('HGET', KEYS[2], seen[n]) }
end
return roll
