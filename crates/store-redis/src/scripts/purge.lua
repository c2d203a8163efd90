-- Forgets the orders that could be forgotten first, and what the indices still say of those that have expired.
local desk, forget, open, rest, dead = unpack(KEYS)
local records, now, limit = ARGV[1], ARGV[2], ARGV[3]

local seal = redis.call('HGET', desk, 'seal')
if seal then
  return { 'sealed', seal }
end

local function strike_off(key)
  for _, list in ipairs({ open, rest, dead }) do
    redis.call('ZREM', list, key)
  end
end

local found = redis.call('ZRANGEBYSCORE', forget, '-inf', now, 'LIMIT', 0, limit)
local removed, cleaned = 0, 0
for _, key in ipairs(found) do
  local row = redis.pcall('HMGET', records .. key, 'version', 'forget')
  if not row.err and row[1] and row[2] and row[2] ~= '' then
    redis.call('UNLINK', records .. key)
    strike_off(key)
    removed = removed + 1
  else
    if redis.call('EXISTS', records .. key) == 0 then
      strike_off(key)
    end
    cleaned = cleaned + 1
  end
  redis.call('ZREM', forget, key)
end
return { 'purged', removed, cleaned }
