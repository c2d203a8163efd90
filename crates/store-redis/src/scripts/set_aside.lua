-- A record that nobody can read waits for a person: among the dead, on no shelf, never forgotten, and, once it was told,
-- never due.
local record, due, forget, open, rest, dead, shelves = unpack(KEYS)
local key, version, is_told = ARGV[1], ARGV[2], ARGV[3]

local now = redis.pcall('HGET', record, 'version')
if type(now) ~= 'table' and (now or '') ~= version then
  return 0
end
redis.call('ZADD', dead, 0, key)
redis.call('ZREM', open, key)
redis.call('ZREM', rest, key)
redis.call('ZREM', forget, key)
redis.call('PERSIST', record)
local shelf = redis.pcall('HGET', record, 'shelf')
if type(shelf) == 'string' and shelf ~= '' then
  redis.call('ZREM', shelves, shelf)
  redis.pcall('HSET', record, 'shelf', '')
end
redis.pcall('HSET', record, 'standing', 'dead', 'forget', '')
if is_told == '1' then
  redis.call('ZREM', due, key)
  redis.pcall('HSET', record, 'due', '')
end
return 1
