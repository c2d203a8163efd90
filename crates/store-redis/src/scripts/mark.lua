-- Who this store is, how far it has come, and the secrets that callbacks were signed with. A node that finds the identity or the count
-- otherwise than before knows that the store was flushed, restored or replaced. The store has another identity from then on, and
-- for a while nodes only put back what they had in hand.
local identity, secret, secrets = unpack(KEYS)
local drawn, known, known_epoch, span, is_putting_back, is_renewed = unpack(ARGV, 1, 6)
local FIRST_SECRET = 7
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local found = redis.call('HMGET', identity, 'id', 'former', 'recovery')
local id, former, recovery = found[1], found[2], tonumber(found[3] or '0')
local epoch = redis.call('HINCRBY', identity, 'epoch', 1)
if id and id == known and (is_renewed == '1' or epoch <= tonumber(known_epoch)) then
  id = false
  epoch = math.max(epoch, tonumber(known_epoch) + 1)
  redis.call('HSET', identity, 'epoch', string.format('%.0f', epoch))
end
if not id then
  id = drawn
  redis.call('HSET', identity, 'id', id)
end
if known ~= '' and id ~= known and former ~= known then
  recovery = now + tonumber(span)
  redis.call('HSET', identity, 'former', known, 'recovery', string.format('%.0f', recovery))
elseif is_putting_back == '1' then
  recovery = math.max(recovery, now + tonumber(span))
  redis.call('HSET', identity, 'recovery', string.format('%.0f', recovery))
end

for n = FIRST_SECRET, #ARGV do
  local first = redis.call('GET', secret)
  if not first then
    redis.call('SET', secret, ARGV[n])
  elseif first ~= ARGV[n] and redis.call('SCARD', secrets) < 8 then
    redis.call('SADD', secrets, ARGV[n])
  end
end
local answer =
  { id, string.format('%.0f', epoch), string.format('%.0f', math.max(recovery - now, 0)), redis.call('GET', secret) }
for _, other in ipairs(redis.call('SMEMBERS', secrets)) do
  answer[#answer + 1] = other
end
return answer
