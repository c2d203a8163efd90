-- How a store is laid out is written down once, by the node that opens it first. Also returns what sort of server this is, to
-- those who may know.
local meta = KEYS[1]
local info = redis.pcall('INFO', 'server')
if type(info) == 'table' then
  info = ''
end
local found = redis.call('HMGET', meta, 'format', 'partitions')
if not (found[1] and found[2]) and ARGV[1] then
  redis.call('HSETNX', meta, 'format', ARGV[1])
  redis.call('HSETNX', meta, 'partitions', ARGV[2])
  found = redis.call('HMGET', meta, 'format', 'partitions')
end
return { found[1], found[2], info }
