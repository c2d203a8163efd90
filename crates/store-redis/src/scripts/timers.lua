-- Writes timers again that the index has lost: the record itself says when its order is due. Open orders have a timer,
-- unless they wait for a person, so fewer timers than open orders are the reason to begin.
local desk, due, open, list = unpack(KEYS)
local records, from, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])

local seal = redis.call('HGET', desk, 'seal')
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
