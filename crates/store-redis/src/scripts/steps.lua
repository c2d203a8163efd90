-- The common part of all scripts that write, put in front of each.
local call, pcall = redis.call, redis.pcall

local function now_ms(time)
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- The next version: greater than the last one, even if the clock was set back, and greater than versions that a failover has lost.
local function next_version(versions, last, time)
  local version = tonumber(time[1]) * 1000000 + tonumber(time[2])
  last = tonumber(last or '0') or 0
  if last >= version then
    version = last + 1
  end
  version = string.format('%.0f', version)
  call('HSET', versions, 'version', version)
  return version
end

-- When Redis itself expires a record that may be removed at `forget_at`, if no purge removes it before.
local function expiry(forget_at, grace, time)
  return string.format('%.0f', math.max(tonumber(forget_at), now_ms(time)) + tonumber(grace))
end

-- Sets or clears the removal time of an order: in the index, and as the TTL of its record.
local function mark_forgettable(forget, record, key, forget_at, was_forget, grace, time)
  if forget_at ~= '' then
    call('ZADD', forget, forget_at, key)
    call('PEXPIREAT', record, expiry(forget_at, grace, time))
  elseif was_forget ~= '' then
    call('ZREM', forget, key)
    call('PERSIST', record)
  end
end

-- Notes which order has taken the answer of this one, for as long as the record exists.
local function mark_taken(takings, taker, key, forget_at, grace, time)
  if forget_at ~= '' then
    call('SET', takings .. taker, key, 'PXAT', expiry(forget_at, grace, time))
  else
    call('SET', takings .. taker, key)
  end
end

local function unmark_taken(takings, taker, key)
  if pcall('GET', takings .. taker) == key then
    call('DEL', takings .. taker)
  end
end

local LISTS = { 'open', 'rest', 'dead' }

-- Removes a key from the lists of its tenant, or from the lists of all tenants if its tenant is not known.
local function strike_from_tenants(of, tenants, tenant, key)
  local names = type(tenant) == 'string' and { tenant } or call('SMEMBERS', tenants)
  for _, name in ipairs(names) do
    for _, list in ipairs(LISTS) do
      call('ZREM', of .. name .. ':' .. list, key)
    end
  end
end

-- Adds to one field of the usage, which stops at 2^63 - 1. Returns the new value, or an error as a table.
local function add(usage, field, added)
  local count = pcall('HINCRBY', usage, field, added)
  if type(count) == 'table' then
    pcall('HSET', usage, field, '9223372036854775807')
  end
  return count
end

-- Adds the counters from ARGV[first] on to one row of the usage. An error in the usage must not stop a commit, and above all not
-- in the middle of its writes.
local function book(usage, days, line, first, day, keep_until, grace, time)
  local opened = false
  for n = first, #ARGV, 2 do
    local added = ARGV[n + 1]
    local count = add(usage, line .. ARGV[n], added)
    opened = opened or count == tonumber(added)
  end
  if opened then
    pcall('ZADD', days, day, day)
    pcall('PEXPIREAT', usage, string.format('%.0f', math.max(tonumber(keep_until), now_ms(time) + tonumber(grace))))
  end
end

