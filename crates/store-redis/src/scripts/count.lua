-- Adds counters to the usage of one day, for events that changed no order.
local versions, days, usage = unpack(KEYS)
local line, day, keep_usage_until, grace = unpack(ARGV, 1, 4)
local FIRST_COUNTERS = 5

local seal = call('HGET', versions, 'seal')
if seal then
  return { 'sealed', seal }
end
book(usage, days, line, FIRST_COUNTERS, day, keep_usage_until, grace, call('TIME'))
return { 'done' }
