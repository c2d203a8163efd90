-- Removes the orders with the earliest removal times, and the index entries of records that Redis has expired.
local versions, forget, open, rest, dead, tenants = unpack(KEYS)
local records, now, limit, takings, of = unpack(ARGV)

local seal = call('HGET', versions, 'seal')
if seal then
  return { 'sealed', seal }
end

local function strike_off(key, tenant)
  for _, list in ipairs({ open, rest, dead }) do
    call('ZREM', list, key)
  end
  strike_from_tenants(of, tenants, tenant, key)
end

local found = call('ZRANGEBYSCORE', forget, '-inf', now, 'LIMIT', 0, limit)
local removed, cleaned = 0, 0
for _, key in ipairs(found) do
  local row = pcall('HMGET', records .. key, 'version', 'forget', 'taker', 'tenant')
  if not row.err and row[1] and row[2] and row[2] ~= '' then
    call('UNLINK', records .. key)
    strike_off(key, row[4])
    if (row[3] or '') ~= '' then
      unmark_taken(takings, row[3], key)
    end
    removed = removed + 1
  else
    if call('EXISTS', records .. key) == 0 then
      strike_off(key)
    end
    cleaned = cleaned + 1
  end
  call('ZREM', forget, key)
end
return { 'purged', removed, cleaned }
