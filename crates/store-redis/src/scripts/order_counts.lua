-- How long each list is, at one moment.
return { redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2]) }
