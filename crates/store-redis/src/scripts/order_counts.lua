-- The length of each list, read in one step.
return { redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2]) }
