-- Stores the secret if there is none, and returns the stored one.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
