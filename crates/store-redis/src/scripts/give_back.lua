-- Makes the lease of this version smaller, if the node still has it.
local node, expected, amount = unpack(ARGV)

local written = call('HGET', leases, node)
local had, until_ms, version = read_lease(written or '')
if version == expected and tonumber(amount) < tonumber(had) then
  call('HSET', leases, node, amount .. ' ' .. until_ms .. ' ' .. version)
end
return { 'done' }
