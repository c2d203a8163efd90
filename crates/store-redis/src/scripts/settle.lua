-- The first node that opens the store writes its layout. Also returns the sort of server, if the user may run INFO.
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
