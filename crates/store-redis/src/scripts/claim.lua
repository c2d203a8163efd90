-- Claims the orders that are due first: returns them, and puts off their timers.
local versions, due = unpack(KEYS)
local records, now, until_, limit = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

local seal = redis.call('HGET', versions, 'seal')
if seal then
  return { 'sealed', seal }
end

local found = redis.call('ZRANGE', due, 0, limit, 'WITHSCORES')
local claimed = { 'claimed', false }
for n = 1, #found, 2 do
  local key, at = found[n], found[n + 1]
  if tonumber(at) > now or n > 2 * limit then
    -- The first order that is not claimed: its time is the next timer.
    claimed[2] = at
    break
  end
  local row = redis.pcall('HMGET', records .. key, 'version', 'record', 'terms', 'taker', 'taken_at')
  if row.err then
    row = { false, false, false, false, false }
  end
  if not row[1] and redis.call('EXISTS', records .. key) == 0 then
    redis.call('ZREM', due, key)
  else
    if tonumber(until_) > tonumber(at) then
      redis.call('ZADD', due, until_, key)
    end
    claimed[#claimed + 1] = { key, at, unpack(row, 1, 5) }
  end
end
return claimed
