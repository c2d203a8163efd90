-- Writes the secret that came with the orders of another store. It counts as the oldest, so no node can replace it.
local identity, secret = unpack(KEYS)
redis.call('SET', secret, ARGV[1])
redis.call('HSET', identity, 'drawn_at', '0', 'drawn_of', ARGV[1])
return 1
