-- One commit of one order: compares the version, then writes the record, its indices, the usage and the notice, or nothing.
-- All checks come before the first write, because Redis does not undo the writes of a script that fails.
local record, versions, due, forget, open, rest, dead, stocks, days, usage, tenants, identity = unpack(KEYS)
local expected, key, by, body, terms, sum, due_at, forget_at, stock, once_taken, taker, takings, standing, awaited,
  channel, grace, line, day, keep_usage_until, of, tenant, known, known_epoch = unpack(ARGV, 1, 23)
local FIRST_COUNTERS = 24

local head = call('HMGET', versions, 'seal', 'version')
if head[1] then
  return { 'sealed', head[1] }
end
-- A node that knows another identity must first put back its orders in hand: an order that looks new may be paid for.
if known ~= '' then
  local mark = call('HMGET', identity, 'id', 'epoch')
  if mark[1] ~= known or tonumber(mark[2] or '0') < tonumber(known_epoch) then
    return { 'forgot' }
  end
end

-- The stored values of the fields that are written below.
local was = {}
if expected == '0' then
  -- A placement that joins gets the whole record with one read. A new order needs no other field.
  local found = call('HMGET', record, 'version', 'record', 'terms', 'taker', 'taken_at', 'by')
  if found[1] and found[6] ~= by then
    return { 'conflict', found[1], found[2], found[3], found[4], found[5] }
  end
  -- This write was made before: its reply was lost, and the client sent it again.
  if found[1] then
    return { 'done', found[1] }
  end
  if found[2] or found[3] or found[6] then
    return { 'broken' }
  end
else
  was = call('HMGET', record, 'version', 'by', 'sum', 'due', 'forget', 'stock', 'standing', 'awaited', 'taker',
    'taken_at', 'tenant')
  if not was[1] then
    if call('EXISTS', record) == 1 then
      return { 'broken' }
    end
    return { 'conflict', false, false, false, false, false }
  end
  if was[1] ~= expected then
    if was[2] == by then
      return { 'done', was[1] }
    end
    local found = call('HMGET', record, 'record', 'terms')
    return { 'conflict', was[1], found[1], found[2], was[9], was[10] }
  end
  if terms == '' and was[3] ~= sum then
    return { 'terms' }
  end
end
local was_due, was_forget, was_stock, was_taker = was[4] or '', was[5] or '', was[6] or '', was[9] or ''

local time = call('TIME')
local version = next_version(versions, head[2], time)
local fields = { 'version', version, 'by', by, 'record', body }
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
if was_stock ~= stock then
  note('stock', stock)
end
-- The values that `take` must write and cannot compute.
if stock ~= '' then
  note('once_taken', once_taken)
  note('line', line)
end
if was_taker ~= taker then
  note('taker', taker)
end
-- From now on the record itself says whether its answer was taken.
if (was[10] or '') ~= '' then
  note('taken_at', '')
end
if was[7] ~= standing then
  note('standing', standing)
end
if was[11] ~= tenant then
  note('tenant', tenant)
end
if was[8] ~= awaited then
  note('awaited', awaited)
end
call('HSET', record, unpack(fields))

-- A claim changes the timer without changing the record, so the timer is always set again.
if due_at ~= '' then
  call('ZADD', due, due_at, key)
elseif was_due ~= '' then
  call('ZREM', due, key)
end

mark_forgettable(forget, record, key, forget_at, was_forget, grace, time)

if was_stock ~= stock then
  if was_stock ~= '' then
    call('ZREM', stocks, was_stock)
  end
  if stock ~= '' then
    call('ZADD', stocks, 0, stock)
  end
end

if was_taker ~= '' and was_taker ~= taker then
  unmark_taken(takings, was_taker, key)
end
if taker ~= '' then
  mark_taken(takings, taker, key, forget_at, grace, time)
end

-- Every order is in exactly one of the three lists. A list of all orders would cost one more insertion for each new order.
if was[7] ~= standing then
  local lists = { open = open, rest = rest, dead = dead }
  if lists[was[7]] then
    call('ZREM', lists[was[7]], key)
  end
  call('ZADD', lists[standing], 0, key)
end
-- Every order is also in one list of its tenant.
if was[7] ~= standing or was[11] ~= tenant then
  if was[7] and was[11] then
    call('ZREM', of .. was[11] .. ':' .. was[7], key)
  end
  if was[11] ~= tenant then
    call('SADD', tenants, tenant)
  end
  call('ZADD', of .. tenant .. ':' .. standing, 0, key)
end

book(usage, days, line, FIRST_COUNTERS, day, keep_usage_until, grace, time)

if awaited == '0' then
  pcall('PUBLISH', channel, key .. ' ' .. by)
end
return { 'done', version }
