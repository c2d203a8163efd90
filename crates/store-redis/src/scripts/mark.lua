-- The identity of this store, its epoch, and the secrets that have signed callbacks. If a node finds another identity or an earlier
-- epoch than before, the store was flushed, restored or replaced. Then the store gets another identity, and for a while nodes only
-- put back their orders in hand.
--
-- All nodes use one secret. A secret that is drawn for a store without one is not used at once: the store may have been flushed, and
-- other nodes then bring the older secret. After that, the younger secret only verifies. The store also gets another identity, so
-- that every node notices the change.
local identity, secret, secrets = unpack(KEYS)
local drawn, known, known_epoch, span, is_putting_back, is_renewed, drawn_at, is_at_work = unpack(ARGV, 1, 8)
local FIRST_SECRET = 9
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
span, drawn_at = tonumber(span), tonumber(drawn_at)

local found = redis.call('HMGET', identity, 'id', 'former', 'recovery', 'drawn_at', 'drawn_of')
local id, former, recovery = found[1], found[2], tonumber(found[3] or '0')
local function recover()
  recovery = math.max(recovery, now + span)
  redis.call('HSET', identity, 'recovery', string.format('%.0f', recovery))
end

local own, stands, since = ARGV[FIRST_SECRET], redis.call('GET', secret), now
if stands and #stands ~= 32 then
  stands = false
elseif stands and stands == found[5] then
  since = tonumber(found[4] or now)
end
if own and not stands then
  stands, since = own, drawn_at or now
  redis.call('SET', secret, own)
  if not drawn_at then
    recover()
  end
elseif own and own == stands then
  since = math.min(since, drawn_at or since)
elseif own and drawn_at and drawn_at < since and (is_at_work == '1' or now < since + span) then
  redis.call('SADD', secrets, stands)
  redis.call('SREM', secrets, own)
  redis.call('SET', secret, own)
  stands, since, id = own, drawn_at, false
  recover()
end
if stands then
  redis.call('HSET', identity, 'drawn_at', string.format('%.0f', since), 'drawn_of', stands)
end

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
  redis.call('HSET', identity, 'former', known)
  recover()
elseif is_putting_back == '1' then
  recover()
end

for n = FIRST_SECRET + 1, #ARGV do
  if ARGV[n] ~= stands and redis.call('SCARD', secrets) < 8 then
    redis.call('SADD', secrets, ARGV[n])
  end
end
if own and own ~= stands and redis.call('SCARD', secrets) < 8 then
  redis.call('SADD', secrets, own)
end
local answer = {
  id,
  string.format('%.0f', epoch),
  string.format('%.0f', math.max(recovery - now, 0)),
  string.format('%.0f', since),
  stands,
}
for _, other in ipairs(redis.call('SMEMBERS', secrets)) do
  if other ~= stands then
    answer[#answer + 1] = other
  end
end
return answer
