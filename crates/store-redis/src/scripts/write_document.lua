-- Writes or removes one shared document, if it still has the expected version.
local versions, documents = unpack(KEYS)
local name, expected, body, max = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local head = call('HMGET', versions, 'seal', 'version')
if head[1] then
  return { 'sealed', head[1] }
end
local found = call('HGET', documents, name)
local stands = found and (string.match(found, '^%d+') or 'damaged') or '0'
if stands ~= expected then
  return { 'conflict' }
end
if body ~= '' and not found and call('HLEN', documents) >= max then
  return { 'no room' }
end
local version = next_version(versions, head[2], call('TIME'))
if body ~= '' then
  call('HSET', documents, name, version .. ' ' .. body)
else
  call('HDEL', documents, name)
end
return { 'done', version }
