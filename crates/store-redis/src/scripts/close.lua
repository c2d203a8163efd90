-- Lists the days to compact, and compacts the usage of one day in steps, so that the server can answer other calls in between.
-- A count that is added meanwhile is in its field before that field is added up, or creates the field again. A write that creates a
-- field lists the day again among those that are kept in detail.
local versions, days, closed, usage = unpack(KEYS)
local step, day = ARGV[1], ARGV[2]
local FIRST_FIELD = 3

local seal = call('HGET', versions, 'seal')
if seal then
  return { 'sealed', seal }
end

if step == 'look' then
  local detail, sums = ARGV[2], ARGV[3]
  return { 'days', call('ZRANGEBYSCORE', days, '-inf', '(' .. detail), call('ZRANGEBYSCORE', closed, '-inf', '(' .. sums) }
elseif step == 'begin' then
  call('ZADD', days, 'XX', day .. '.5', day)
elseif step == 'sum up' then
  for n = FIRST_FIELD, #ARGV, 2 do
    local field, sum = ARGV[n], ARGV[n + 1]
    local count = call('HGET', usage, field)
    -- A value that is not a number stays, for an operator.
    if count and string.match(count, '^%-?%d+$') then
      add(usage, sum, count)
      call('HDEL', usage, field)
    end
  end
elseif step == 'end' then
  local mark = call('ZSCORE', days, day)
  if mark and tonumber(mark) == tonumber(day) + 0.5 then
    call('ZREM', days, day)
    if call('EXISTS', usage) == 1 then
      call('ZADD', closed, day, day)
      call('PEXPIREAT', usage, ARGV[3])
    end
  end
elseif step == 'forget' then
  call('UNLINK', usage)
  call('ZREM', days, day)
  call('ZREM', closed, day)
end
return { 'done' }
