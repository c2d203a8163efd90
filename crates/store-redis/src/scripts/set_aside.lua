-- An unreadable record waits for an operator: among the dead, in no tenant's list, on no stock, never forgotten, and, once it was reported,
-- never due.
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
-- Its tenant is not known. A write that can read it again lists it again.
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
