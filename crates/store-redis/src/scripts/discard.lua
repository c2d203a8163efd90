-- Removes an unreadable record with its index entries, if it has not changed since it was read. The last version stays in
-- `versions`, so the next record under this key has a higher one.
local record, versions, due, forget, open, rest, dead, stocks, tenants = unpack(KEYS)
local key, takings, of, is_hash = unpack(ARGV, 1, 4)
local FIRST_FIELD = 5

local seal = call('HGET', versions, 'seal')
if seal then
  return { 'sealed', seal }
end
if call('EXISTS', record) == 0 then
  return { 'gone' }
end

local found = pcall('HMGET', record, 'version', 'record', 'terms', 'taker', 'taken_at', 'stock')
if (found.err and '0' or '1') ~= is_hash then
  return { 'changed' }
end
if not found.err then
  for n = 1, 5 do
    if (found[n] or '') ~= ARGV[FIRST_FIELD + n - 1] then
      return { 'changed' }
    end
  end
  if (found[6] or '') ~= '' then
    call('ZREM', stocks, found[6])
  end
  if (found[4] or '') ~= '' then
    unmark_taken(takings, found[4], key)
  end
end
for _, set in ipairs({ due, forget, open, rest, dead }) do
  call('ZREM', set, key)
end
-- The tenant in the record may be damaged, so the key is removed from the lists of all tenants.
strike_from_tenants(of, tenants, nil, key)
call('UNLINK', record)
return { 'done' }
