-- A record that nobody can read waits for a person: among the dead, in no tenant's list, on no stock, never forgotten, and, once it was told,
-- never due.
local record, due, forget, open, rest, dead, stocks, tenants = unpack(KEYS)
local key, version, is_told, of = unpack(ARGV)

local now = pcall('HGET', record, 'version')
if type(now) ~= 'table' and (now or '') ~= version then
  return 0
end
call('ZADD', dead, 0, key)
call('ZREM', open, key)
call('ZREM', rest, key)
call('ZREM', forget, key)
-- Nobody knows whose it is. A write that can read it again lists it again.
strike_from_tenants(of, tenants, nil, key)
pcall('HDEL', record, 'tenant')
call('PERSIST', record)
local stock = pcall('HGET', record, 'stock')
if type(stock) == 'string' and stock ~= '' then
  call('ZREM', stocks, stock)
  pcall('HSET', record, 'stock', '')
end
pcall('HSET', record, 'standing', 'dead', 'forget', '')
if is_told == '1' then
  call('ZREM', due, key)
  pcall('HSET', record, 'due', '')
end
return 1
