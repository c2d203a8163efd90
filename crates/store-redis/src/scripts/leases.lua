-- The common part of the scripts about leases, put in front of each. KEYS: the versions, the leases of one limit.
local versions, leases = unpack(KEYS)

local function read_lease(written)
  return string.match(written, '^(%d+) (%d+) (%d+)$')
end

-- Returns the version, the amount that nodes other than this one have leased now, and the nodes whose leases have ended.
local function leased(node, now)
  local fields, version, sum, ended = call('HGETALL', leases), '0', 0, {}
  for n = 1, #fields, 2 do
    if fields[n] == 'version' then
      version = fields[n + 1]
    else
      local amount, until_ms = read_lease(fields[n + 1])
      if not amount or tonumber(until_ms) <= now then
        ended[#ended + 1] = fields[n]
      elseif fields[n] ~= node then
        sum = sum + tonumber(amount)
      end
    end
  end
  return version, string.format('%.0f', sum), ended
end
