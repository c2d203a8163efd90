-- One step of one order: compare, then write the record, its indices, the books and the notice, or nothing at all.
-- Everything that can refuse comes before the first write, because what a script has written stays written.
local record, desk, all, due, forget, open, dead, shelves, days, books = unpack(KEYS)
local expected, key, by = ARGV[1], ARGV[2], ARGV[3]
local body, terms, sum = ARGV[4], ARGV[5], ARGV[6]
local due_at, forget_at, shelf, standing, awaited = ARGV[7], ARGV[8], ARGV[9], ARGV[10], ARGV[11]
local channel, grace, day, keep_books_until = ARGV[12], ARGV[13], ARGV[14], ARGV[15]
local FIRST_TALLY = 16

local desk_says = redis.call('HMGET', desk, 'seal', 'version')
if desk_says[1] then
  return { 'sealed', desk_says[1] }
end

local was = redis.call('HMGET', record, 'version', 'by', 'sum', 'due', 'forget', 'shelf', 'standing')
local version = was[1]
if not version and redis.call('EXISTS', record) == 1 then
  return { 'broken' }
end
if (version or '0') ~= expected then
  if not version then
    return { 'conflict', false, false, false }
  end
  -- The same write once more: its answer was lost on the way, and it was sent again.
  if was[2] == by then
    return { 'done', version }
  end
  local found = redis.call('HMGET', record, 'record', 'terms')
  return { 'conflict', version, found[1], found[2] }
end
if terms == '' and was[3] ~= sum then
  return { 'terms' }
end

-- Ahead of the last one, also when the clock was set back; and ahead of those that a failover has lost.
local time = redis.call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local next_version = tonumber(time[1]) * 1000000 + tonumber(time[2])
local last = tonumber(desk_says[2] or '0') or 0
if last >= next_version then
  next_version = last + 1
end
next_version = string.format('%.0f', next_version)

redis.call('HSET', desk, 'version', next_version)
local fields = { 'version', next_version, 'by', by, 'record', body, 'due', due_at, 'forget', forget_at, 'shelf', shelf,
  'standing', standing, 'awaited', awaited }
if was[3] ~= sum then
  fields[17], fields[18], fields[19], fields[20] = 'terms', terms, 'sum', sum
end
redis.call('HSET', record, unpack(fields))
if not version then
  redis.call('ZADD', all, 0, key)
end

-- A claim has put the alarm off without a word in the record, so it is always set anew.
if due_at ~= '' then
  redis.call('ZADD', due, due_at, key)
elseif version and was[4] ~= '' then
  redis.call('ZREM', due, key)
end

if forget_at ~= '' then
  redis.call('ZADD', forget, forget_at, key)
  local expires = math.max(tonumber(forget_at), now_ms) + tonumber(grace)
  redis.call('PEXPIREAT', record, string.format('%.0f', expires))
elseif version and was[5] ~= '' then
  redis.call('ZREM', forget, key)
  redis.call('PERSIST', record)
end

if was[6] and was[6] ~= '' and was[6] ~= shelf then
  redis.call('ZREM', shelves, was[6])
end
if shelf ~= '' and was[6] ~= shelf then
  redis.call('ZADD', shelves, 0, shelf)
end

if was[7] ~= standing then
  local lists = { open = open, dead = dead }
  if lists[was[7]] then
    redis.call('ZREM', lists[was[7]], key)
  end
  if lists[standing] then
    redis.call('ZADD', lists[standing], 0, key)
  end
end

-- Whatever is wrong with the books must not stop an order, least of all half-way.
local opened = false
for n = FIRST_TALLY, #ARGV, 2 do
  local count = redis.pcall('HINCRBY', books, ARGV[n], ARGV[n + 1])
  if type(count) == 'table' then
    redis.pcall('HSET', books, ARGV[n], '9223372036854775807')
  end
  opened = opened or count == tonumber(ARGV[n + 1])
end
if opened then
  redis.pcall('ZADD', days, day, day)
  local expires = math.max(tonumber(keep_books_until), now_ms + tonumber(grace))
  redis.pcall('PEXPIREAT', books, string.format('%.0f', expires))
end

if awaited == '0' then
  redis.pcall('PUBLISH', channel, key .. ' ' .. by)
end
return { 'done', next_version }
