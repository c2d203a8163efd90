-- The identity of the store, in another partition: a script can only look into its own. One that has lost what the node knows is left
-- as it is, and the script returns 0. The store gets another identity first.
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
