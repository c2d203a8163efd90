-- Sets an unreadable record aside for an operator: it is listed among the dead, in no tenant's list and in no stock, and it is never
-- removed. After it was reported, it is never due.
local record, due, forget, open, rest, dead, stocks, tenants = unpack(KEYS)
local key, version, is_reported, of = unpack(ARGV)

local now = pcall('HGET', record, 'version')
if type(now) ~= 'table' and (now or '') ~= version then
  return 0
end
call('ZADD', dead, 0, key)
call('ZREM', open, key)
call('ZREM', rest, key)
call('ZREM', forget, key)
-- The tenant of the record is not known. The next commit of the order lists it for its tenant again.
strike_from_tenants(of, tenants, nil, key)
pcall('HDEL', record, 'tenant')
call('PERSIST', record)
local stock = pcall('HGET', record, 'stock')
if type(stock) == 'string' and stock ~= '' then
  call('ZREM', stocks, stock)
  pcall('HSET', record, 'stock', '')
end
pcall('HSET', record, 'standing', 'dead', 'forget', '')
if is_reported == '1' then
  call('ZREM', due, key)
  pcall('HSET', record, 'due', '')
end
return 1
