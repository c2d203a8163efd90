-- Tells which days are to be closed, and closes the usage of one day in steps, so that others are served between them. What is counted meanwhile either is there when
-- its field is summed up, or opens it again; and a write that opens one puts the day back among those kept in detail.
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
    -- What is no number stays, for a person.
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
