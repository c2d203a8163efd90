-- Gives the first answer of a stock to one taker. A taker that has an answer already gets the same one again. With `only_looks`,
-- nothing is taken. The record stays unchanged: the taker and the time are written beside it, and a reader adds them to the order.
local versions, due, forget, stocks, days, usage = unpack(KEYS)
local records, takings, taker, from, to, only_looks, skips_own, at, grace, day, keep_usage_until =
  unpack(ARGV, 1, 11)
local FIRST_COUNTERS = 12
-- The index can name records that are gone. One call removes at most this many of them, because it blocks all other calls.
local STALE_MAX = 64

local head = call('HMGET', versions, 'seal', 'version')
if head[1] then
  return { 'sealed', head[1] }
end

if skips_own == '0' then
  local own = pcall('GET', takings .. taker)
  if type(own) == 'string' then
    local row = pcall('HMGET', records .. own, 'version', 'record', 'terms', 'taker', 'taken_at')
    if row[1] and row[4] == taker then
      return { 'own', own, unpack(row, 1, 5) }
    end
  end
end

local function first_of_the_stock()
  for _ = 1, STALE_MAX do
    local member = call('ZRANGEBYLEX', stocks, from, to, 'LIMIT', 0, 1)[1]
    if not member then
      return nil
    end
    local key = string.match(member, '^.*:(.*)$')
    local row = pcall('HMGET', records .. key, 'version', 'stock', 'once_taken', 'line', 'due', 'forget')
    local due_at, forget_at = string.match(row[3] or '', '^(%d*):(%d*)$')
    if row[1] and row[2] == member and due_at and row[4] then
      return member, key, row, due_at, forget_at
    end
    if row.err or row[2] == member then
      -- The record is damaged. The sweep reports it when it is due.
      from = '(' .. member
    else
      call('ZREM', stocks, member)
    end
  end
  return nil
end

local member, key, row, due_at, forget_at = first_of_the_stock()
if not member then
  return { 'none' }
end
if only_looks == '1' then
  return { 'there', member }
end

local record, line, was_due, was_forget = records .. key, row[4], row[5] or '', row[6] or ''
local body = call('HMGET', record, 'record', 'terms')
local time = call('TIME')
local version = next_version(versions, head[2], time)
-- A commit that is sent again must not mistake this version for its own, so this version has no writer.
call('HSET', record, 'version', version, 'by', '', 'stock', '', 'due', due_at, 'forget', forget_at, 'taker', taker,
  'taken_at', at)
call('ZREM', stocks, member)
if due_at ~= '' then
  call('ZADD', due, due_at, key)
else
  call('ZREM', due, key)
end
mark_forgettable(forget, record, key, forget_at, was_forget, grace, time)
mark_taken(takings, taker, key, forget_at, grace, time)
book(usage, days, line, FIRST_COUNTERS, day, keep_usage_until, grace, time)
return { 'taken', key, version, body[1], body[2], taker, at, member, was_due, was_forget }
