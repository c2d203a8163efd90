-- Leases a part of one limit to a node, if no node has leased more since the version that was expected.
local node, expected, amount, life, forgotten_after = unpack(ARGV)

local time = call('TIME')
local now = now_ms(time)
local version, sum, ended = leased(node, now)
if version ~= expected then
  return { 'conflict', version, sum }
end
for _, gone in ipairs(ended) do
  call('HDEL', leases, gone)
end
version = next_version(versions, call('HGET', versions, 'version'), time)
local until_ms = string.format('%.0f', now + tonumber(life))
call('HSET', leases, 'version', version, node, amount .. ' ' .. until_ms .. ' ' .. version)
call('PEXPIRE', leases, forgotten_after)
return { 'done', version }
