-- Who this store is, how far it has come, and the secrets that callbacks were signed with. Whoever finds the identity or the count
-- otherwise than before knows that the store was flushed, restored or replaced.
local identity, secret, secrets = unpack(KEYS)
redis.call('HSETNX', identity, 'id', ARGV[1])
local epoch = redis.call('HINCRBY', identity, 'epoch', 1)
for n = 2, #ARGV do
  local first = redis.call('GET', secret)
  if not first then
    redis.call('SET', secret, ARGV[n])
  elseif first ~= ARGV[n] and redis.call('SCARD', secrets) < 8 then
    redis.call('SADD', secrets, ARGV[n])
  end
end
local answer = { redis.call('HGET', identity, 'id'), string.format('%.0f', epoch), redis.call('GET', secret) }
for _, other in ipairs(redis.call('SMEMBERS', secrets)) do
  answer[#answer + 1] = other
end
return answer
