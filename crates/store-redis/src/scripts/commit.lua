-- One step of one order: compare, then write the record, its indices, the books and the notice, or nothing at all.
-- Everything that can refuse comes before the first write, because what a script has written stays written.
local call, pcall = redis.call, redis.pcall
local record, desk, due, forget, open, rest, dead, shelves, days, books = unpack(KEYS)
local expected, key, by, body, terms, sum, due_at, forget_at, shelf, standing, awaited, channel, grace, day,
  keep_books_until = unpack(ARGV, 1, 15)
local FIRST_TALLY = 16

local desk_says = call('HMGET', desk, 'seal', 'version')
if desk_says[1] then
  return { 'sealed', desk_says[1] }
end

-- What was there, of all that is written below.
local was = {}
if expected == '0' then
  -- Whoever joins learns all in one look, and of a new order there is nothing else to know.
  local found = call('HMGET', record, 'version', 'record', 'terms', 'by')
  if found[1] and found[4] ~= by then
    return { 'conflict', found[1], found[2], found[3] }
  end
  -- The same write once more: its answer was lost on the way, and it was sent again.
  if found[1] then
    return { 'done', found[1] }
  end
  if found[2] or found[3] or found[4] then
    return { 'broken' }
  end
else
  was = call('HMGET', record, 'version', 'by', 'sum', 'due', 'forget', 'shelf', 'standing', 'awaited')
  if not was[1] then
    if call('EXISTS', record) == 1 then
      return { 'broken' }
    end
    return { 'conflict', false, false, false }
  end
  if was[1] ~= expected then
    if was[2] == by then
      return { 'done', was[1] }
    end
    local found = call('HMGET', record, 'record', 'terms')
    return { 'conflict', was[1], found[1], found[2] }
  end
  if terms == '' and was[3] ~= sum then
    return { 'terms' }
  end
end
local was_due, was_forget, was_shelf = was[4] or '', was[5] or '', was[6] or ''

-- Ahead of the last one, also when the clock was set back; and ahead of those that a failover has lost.
local time = call('TIME')
local now_ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local next_version = tonumber(time[1]) * 1000000 + tonumber(time[2])
local last = tonumber(desk_says[2] or '0') or 0
if last >= next_version then
  next_version = last + 1
end
next_version = string.format('%.0f', next_version)

call('HSET', desk, 'version', next_version)
local fields = { 'version', next_version, 'by', by, 'record', body }
local function note(name, value)
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end
if was[3] ~= sum then
  note('terms', terms)
  note('sum', sum)
end
if was_due ~= due_at then
  note('due', due_at)
end
if was_forget ~= forget_at then
  note('forget', forget_at)
end
if was_shelf ~= shelf then
  note('shelf', shelf)
end
if was[7] ~= standing then
  note('standing', standing)
end
if was[8] ~= awaited then
  note('awaited', awaited)
end
call('HSET', record, unpack(fields))

-- A claim has put the alarm off without a word in the record, so it is always set anew.
if due_at ~= '' then
  call('ZADD', due, due_at, key)
elseif was_due ~= '' then
  call('ZREM', due, key)
end

if forget_at ~= '' then
  call('ZADD', forget, forget_at, key)
  local expires = math.max(tonumber(forget_at), now_ms) + tonumber(grace)
  call('PEXPIREAT', record, string.format('%.0f', expires))
elseif was_forget ~= '' then
  call('ZREM', forget, key)
  call('PERSIST', record)
end

if was_shelf ~= shelf then
  if was_shelf ~= '' then
    call('ZREM', shelves, was_shelf)
  end
  if shelf ~= '' then
    call('ZADD', shelves, 0, shelf)
  end
end

-- Every order stands in one list and no other: a list of all would be one more insertion for each new order.
if was[7] ~= standing then
  local lists = { open = open, rest = rest, dead = dead }
  if lists[was[7]] then
    call('ZREM', lists[was[7]], key)
  end
  call('ZADD', lists[standing], 0, key)
end

-- Whatever is wrong with the books must not stop an order, least of all half-way.
local opened = false
for n = FIRST_TALLY, #ARGV, 2 do
  local count = pcall('HINCRBY', books, ARGV[n], ARGV[n + 1])
  if type(count) == 'table' then
    pcall('HSET', books, ARGV[n], '9223372036854775807')
  end
  opened = opened or count == tonumber(ARGV[n + 1])
end
if opened then
  pcall('ZADD', days, day, day)
  local expires = math.max(tonumber(keep_books_until), now_ms + tonumber(grace))
  pcall('PEXPIREAT', books, string.format('%.0f', expires))
end

if awaited == '0' then
  pcall('PUBLISH', channel, key .. ' ' .. by)
end
return { 'done', next_version }
