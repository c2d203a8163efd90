-- Forgets the orders that could be forgotten first, and what the indices still say of those that have expired.
local desk, forget, all = unpack(KEYS)
local records, now, limit = ARGV[1], ARGV[2], ARGV[3]

local seal = redis.call('HGET', desk, 'seal')
if seal then
  return { 'sealed', seal }
end

local found = redis.call('ZRANGEBYSCORE', forget, '-inf', now, 'LIMIT', 0, limit)
local removed, cleaned = 0, 0
for _, key in ipairs(found) do
  local row = redis.pcall('HMGET', records .. key, 'version', 'forget')
  if not row.err and row[1] and row[2] and row[2] ~= '' then
    redis.call('UNLINK', records .. key)
    redis.call('ZREM', all, key)
    removed = removed + 1
  else
    if redis.call('EXISTS', records .. key) == 0 then
      redis.call('ZREM', all, key)
    end
    cleaned = cleaned + 1
  end
  redis.call('ZREM', forget, key)
end
return { 'purged', removed, cleaned }
