-- Writes timers again that the index has lost: each record says when its order is due. Every open order has a timer, so if there
-- are fewer timers than open orders, timers were lost.
local versions, due, open, list = unpack(KEYS)
local records, from, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])

local seal = redis.call('HGET', versions, 'seal')
if seal then
  return { 'sealed', seal }
end
if from == '' and list == open and redis.call('ZCARD', due) >= redis.call('ZCARD', open) then
  return { 'whole' }
end
local page = redis.call('ZRANGEBYLEX', list, from == '' and '-' or '(' .. from, '+', 'LIMIT', 0, limit)
local restored = 0
for _, key in ipairs(page) do
  if not redis.call('ZSCORE', due, key) then
    local at = redis.pcall('HGET', records .. key, 'due')
    if type(at) == 'string' and at ~= '' then
      redis.call('ZADD', due, at, key)
      restored = restored + 1
    end
  end
end
return { 'looked', #page == limit and page[#page] or '', restored }
