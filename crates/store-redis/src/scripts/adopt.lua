-- Writes the identity of the store into another partition, because a script can only read its own. A partition that has lost an
-- epoch that the node knows is left unchanged, and the script returns 0: first the store must get another identity.
local identity = KEYS[1]
local id, epoch, known, known_epoch = unpack(ARGV, 1, 4)
local found = redis.call('HMGET', identity, 'id', 'epoch')
if id == known and (not found[1] or tonumber(found[2] or '0') < tonumber(known_epoch)) then
  return 0
end
redis.call('HSET', identity, 'id', id)
if tonumber(found[2] or '0') < tonumber(epoch) then
  redis.call('HSET', identity, 'epoch', epoch)
end
return 1
