-- Puts an answer back into its stock, because the node that took it could not read it: another node may. If the record was written
-- since then, nothing changes.
local record, due, forget, stocks, usage = unpack(KEYS)
local key, version, member, due_at, forget_at, grace, takings = unpack(ARGV, 1, 7)
local FIRST_COUNTERS = 8

local was = call('HMGET', record, 'version', 'taker', 'forget', 'line')
if was[1] ~= version then
  return 0
end
call('HSET', record, 'stock', member, 'due', due_at, 'forget', forget_at, 'taker', '', 'taken_at', '')
call('ZADD', stocks, 0, member)
if due_at ~= '' then
  call('ZADD', due, due_at, key)
end
mark_forgettable(forget, record, key, forget_at, was[3] or '', grace, call('TIME'))
unmark_taken(takings, was[2] or '', key)
for n = FIRST_COUNTERS, #ARGV, 2 do
  pcall('HINCRBY', usage, (was[4] or '') .. ARGV[n], '-' .. ARGV[n + 1])
end
return 1
